"""The issuers that this user trusts, in a file beside the progress file."""

from contextlib import AbstractContextManager
from pathlib import Path

from gradacc_lessons import canonical
from gradacc_lessons.certificate.keys import did_of, key_of
from gradacc_lessons.certificate.names import clean_name
from gradacc_lessons.certificate.problem import CertificateError
from gradacc_lessons.progress import progress_file
from gradacc_lessons.whole_file import alone, write_whole

FILE_NAME = "trusted-issuers.json"


def trusted() -> dict[str, str]:
    """By did:key, the name that the user gave the issuer; CertificateError if the file is not as it was written."""
    file = _file()
    if not file.exists():
        return {}
    try:
        kept = canonical.read(file.read_bytes())
        return {did_of(key_of(did)): clean_name(name) for did, name in kept.items()}
    except (ValueError, AttributeError, TypeError):
        raise CertificateError(
            f"{file} is damaged, so nobody is trusted. Put it aside, and name the issuers again.",
            f"{file} is beschadigd, dus niemand wordt vertrouwd. Zet het opzij en noem de uitgevers opnieuw.",
        ) from None


def trust(did: str, name: str) -> None:
    """Trust an issuer from now on, under a name of the user's choice."""
    did, name = did_of(key_of(did)), clean_name(name)
    with _changing():
        _write({**trusted(), did: name})


def forget(did: str) -> bool:
    """Trust an issuer no longer; False if it was not trusted."""
    with _changing():
        known = trusted()
        found = known.pop(did, None) is not None
        if found:
            _write(known)
    return found


def _file() -> Path:
    return progress_file().parent / FILE_NAME


def _changing() -> AbstractContextManager[None]:
    """Of two processes that change the file, the second reads what the first has written."""
    folder = _file().parent
    folder.mkdir(parents=True, exist_ok=True)
    return alone(folder)


def _write(known: dict[str, str]) -> None:
    write_whole(_file(), canonical.canonical(known) + b"\n", private=True)

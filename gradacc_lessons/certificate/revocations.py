"""A list of certificates that their issuer takes back: one token in a file, signed with the issuer's key."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from gradacc_lessons.certificate import tokens
from gradacc_lessons.certificate.credential import ID_SCHEME, moment, when
from gradacc_lessons.certificate.keys import SigningKey, key_in, own_key
from gradacc_lessons.certificate.problem import CertificateError
from gradacc_lessons.certificate.source import read_source
from gradacc_lessons.progress import progress_file
from gradacc_lessons.whole_file import alone, write_whole

ID = re.compile(re.escape(ID_SCHEME) + "[0-9a-f]{64}")


@dataclass(frozen=True)
class Revocations:
    """A list as it was signed."""

    issuer: str
    """The did:key of who signed it; it says nothing about the certificates of others."""
    at: datetime
    """When it was last changed."""
    ids: tuple[str, ...]
    """The ids that are revoked."""


class _Claims(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    at: str
    revoked: list[str]


def read_revocations(file: Path) -> Revocations:
    """The list in a file; CertificateError says what is wrong with it."""
    try:
        with file.open("rb") as stream:
            text = stream.read(tokens.LONGEST + 1).decode("ascii", "replace").strip()
        issuer, claims = tokens.read(text, tokens.REVOCATIONS)
        parts = _Claims.model_validate(claims)
        return Revocations(issuer, moment(parts.at), tuple(parts.revoked))
    except OSError as error:
        why, waarom = f"it cannot be read ({error.strerror})", f"het kan niet gelezen worden ({error.strerror})"
    except CertificateError as error:
        why, waarom = error.text.en, error.text.nl
    except (ValidationError, ValueError):
        why, waarom = "it is no list of ids with a time", "het is geen lijst van id's met een tijd"
    raise CertificateError(
        f"the revocation list {file} cannot be relied on: {why}",
        f"op de intrekkingslijst {file} valt niet te bouwen: {waarom}",
    )


def revoke(credential_id: str, file: Path, key: SigningKey, at: datetime | None = None) -> Revocations:
    """Add a certificate's id to the list in `file`, which is made if it is not there; signed anew, whole or not at all.

    CertificateError if the list there is another issuer's or is damaged, or if this is no certificate's id.
    """
    if not ID.fullmatch(credential_id):
        raise CertificateError(
            f"{credential_id[:80]!r} is no certificate's id; it is {ID_SCHEME} and 64 digits",
            f"{credential_id[:80]!r} is geen id van een certificaat; dat is {ID_SCHEME} en 64 cijfers",
        )
    own_folder = progress_file().parent
    own_folder.mkdir(parents=True, exist_ok=True)
    with alone(own_folder):  # two processes that revoke at once lose nothing
        known = _known(file, key)
        claims = {"at": when(at or datetime.now(UTC)), "revoked": sorted({*known, credential_id})}
        token = tokens.sign(claims, key, tokens.REVOCATIONS)
        if len(token) > tokens.LONGEST:
            raise CertificateError(
                f"The list {file} is full with {len(known)} certificates; begin another one.",
                f"De lijst {file} is vol met {len(known)} certificaten; begin een andere.",
            )
        write_whole(file, token.encode("ascii") + b"\n")
    return read_revocations(file)


def _known(file: Path, key: SigningKey) -> tuple[str, ...]:
    """The ids on the list so far."""
    if not file.exists():
        return ()
    before = read_revocations(file)
    if before.issuer != key.did:
        raise CertificateError(
            f"The list {file} is signed with another key than yours; choose another file.",
            f"De lijst {file} is met een andere sleutel ondertekend dan de jouwe; kies een ander bestand.",
        )
    return before.ids


def revoke_source(source: str, file: Path, key_file: Path | None) -> Revocations:
    """Revoke what `source` names, a certificate or its id, with the key in `key_file` or the user's own."""
    if key_file is not None and not key_file.is_file():
        raise CertificateError(f"there is no key file {key_file}", f"er is geen sleutelbestand {key_file}")
    key = own_key() if key_file is None else key_in(key_file)
    if source.startswith(ID_SCHEME):
        return revoke(source, file, key)
    credential = read_source(source)
    if credential.issuer != key.did:
        raise CertificateError(
            "Only its issuer can take a certificate back, and this one was issued with another key.",
            "Alleen de uitgever kan een certificaat intrekken, en dit is met een andere sleutel uitgegeven.",
        )
    return revoke(credential.id, file, key)

"""Verifying a certificate offline: is it unchanged, is it valid now, and is its issuer one that the user trusts?

A key that is found inside a certificate is never trusted: it says who to ask about, and no more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from gradacc_lessons.certificate import words
from gradacc_lessons.certificate.credential import Credential, when
from gradacc_lessons.certificate.keyring import trusted
from gradacc_lessons.certificate.keys import read_did
from gradacc_lessons.certificate.problem import CertificateError
from gradacc_lessons.certificate.revocations import read_revocations
from gradacc_lessons.certificate.source import read_source
from gradacc_lessons.text import Text, joined

Outcome = Literal["trusted", "unknown", "invalid"]
EXIT_CODES: dict[Outcome, int] = {"trusted": 0, "invalid": 1, "unknown": 3}


@dataclass(frozen=True)
class Verdict:
    """What verifying found."""

    outcome: Outcome
    """Trusted issuer; unchanged but of an unknown issuer; or anything else."""
    text: Text
    """The answer in words, with what the certificate says if it is unchanged and valid."""
    credential: Credential | None = None
    """The certificate, unless it is invalid."""

    @property
    def exit_code(self) -> int:
        """What `gradacc verify` ends with."""
        return EXIT_CODES[self.outcome]


def verify(
    source: str | Path, *, issuers: Sequence[str] = (), revoked: Sequence[Path] = (), at: datetime | None = None
) -> Verdict:
    """Verify a file (.json, .jwt, .svg, .png) or the text of a token or of a QR code.

    `issuers` are keys to trust instead of the keyring's: did:keys, or files that hold a public key. `revoked` are
    revocation lists; at least one must be by the certificate's issuer. `at` is when it is to be valid; now if None.
    CertificateError for a key or a keyring that cannot be used; whatever is wrong with the certificate is a Verdict.
    """
    known = {read_did(key): "" for key in issuers} if issuers else trusted()
    try:
        credential = read_source(source)
        _check_time(credential, at or datetime.now(UTC))
        notes = _check_lists(credential, revoked)
    except CertificateError as error:
        return Verdict("invalid", Text(f"✘ Not valid: {error.text.en}.", f"✘ Niet geldig: {error.text.nl}."))
    name = known.get(credential.issuer)
    answer = words.unknown(credential, named=bool(issuers)) if name is None else words.trusted(name)
    text = joined([answer, words.contents(credential), *notes, words.proves(credential.self_issued)], "\n")
    return Verdict("unknown" if name is None else "trusted", text, credential)


def _check_time(credential: Credential, at: datetime) -> None:
    if at < credential.valid_from:
        day = when(credential.valid_from)
        raise CertificateError(f"it is valid from {day} and not yet", f"het geldt pas vanaf {day}")
    if credential.valid_until is not None and at >= credential.valid_until:
        day = when(credential.valid_until)
        raise CertificateError(f"it expired on {day}", f"het is verlopen op {day}")


def _check_lists(credential: Credential, files: Sequence[Path]) -> list[Text]:
    """What the revocation lists say, for the answer; CertificateError if that is that it was revoked."""
    lists = [found for file in files if (found := read_revocations(file)).issuer == credential.issuer]
    if files and not lists:
        raise CertificateError(
            "the revocation list is not by its issuer, so it does not say whether it was revoked",
            "de intrekkingslijst is niet van de uitgever, dus die zegt niet of het is ingetrokken",
        )
    if not files and not credential.self_issued:
        return [words.NO_LIST]
    for each in lists:
        if credential.id in each.ids:
            raise CertificateError("its issuer has revoked it", "de uitgever heeft het ingetrokken")
    return [
        Text(
            f"Not on the issuer's revocation list of {when(each.at)}.",
            f"Staat niet op de intrekkingslijst van de uitgever van {when(each.at)}.",
        )
        for each in lists
    ]

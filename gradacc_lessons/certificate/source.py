"""Where a certificate can come from: a file of any of its kinds, or a text that somebody pastes."""

from pathlib import Path

from gradacc_lessons import canonical
from gradacc_lessons.certificate import compact
from gradacc_lessons.certificate.credential import Credential
from gradacc_lessons.certificate.picture_seal import PNG, read_sealed
from gradacc_lessons.certificate.problem import CertificateError
from gradacc_lessons.certificate.reading import as_document, read_credential
from gradacc_lessons.home import expanded

LARGEST = 20_000_000
"""Bytes of a file; a picture of ours has about a million."""


def read_source(source: str | Path) -> Credential:
    """The credential in a file, or in the text of a token or a QR code; CertificateError says what is wrong with it."""
    text = source.strip() if isinstance(source, str) else ""
    if isinstance(source, str) and not text:
        raise CertificateError(
            "there is nothing to verify; name a file, or paste a token or the text of a QR code",
            "er is niets om te controleren; noem een bestand, of plak een token of de tekst van een QR-code",
        )
    if text.startswith(compact.MARK):
        return read_credential(compact.token_of(text))
    if text.count(".") == 2 and text.startswith("eyJ"):  # how every token begins
        return read_credential(text)
    return read_bytes(_bytes_of(expanded(source)))


def read_bytes(raw: bytes) -> Credential:
    """The credential in a file's bytes, whatever kind of file it is."""
    if raw.startswith(PNG) or raw.lstrip()[:5] in (b"<?xml", b"<svg "):
        return read_sealed(raw)
    if raw.lstrip()[:1] == b"{":
        return _read_document(raw)
    text = raw.decode("ascii", "replace").strip()
    return read_credential(compact.token_of(text) if text.startswith(compact.MARK) else text)


def _bytes_of(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            raw = stream.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        name = f"{str(path)[:80]!r}"
        raise CertificateError(f"{name} cannot be read ({why})", f"{name} kan niet gelezen worden ({why})") from None
    if len(raw) > LARGEST:
        raise CertificateError(
            f"the file is larger than {LARGEST:,} bytes", f"het bestand is groter dan {LARGEST:,} bytes"
        )
    return raw


def _read_document(raw: bytes) -> Credential:
    """A credential whose proof is inside; what can be read in it must be what was signed."""
    try:
        document = canonical.read(raw)
    except canonical.JsonError as error:
        raise CertificateError(str(error), f"het bestand kan niet gelezen worden: {error}") from None
    proof = document.get("proof")
    if not isinstance(proof, dict) or not isinstance(proof.get("jwt"), str):
        raise CertificateError(
            "it is not signed: it holds no proof", "het is niet ondertekend: er staat geen bewijs in"
        )
    credential = read_credential(proof["jwt"])
    if canonical.canonical(as_document(credential)) != canonical.canonical(document):
        raise CertificateError(
            "what can be read in it is not what was signed", "wat erin te lezen staat is niet wat ondertekend is"
        )
    return credential

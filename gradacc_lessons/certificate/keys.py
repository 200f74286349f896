"""Keys: Ed25519, written for others as did:key, and kept for oneself in a file that nobody else can read.

A did:key is the public key itself: "did:key:z", then base58 of two bytes that say Ed25519 and the key's 32 bytes
(W3C CCG, The did:key Method).
"""

import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from gradacc_lessons.certificate.problem import CertificateError
from gradacc_lessons.home import expanded
from gradacc_lessons.progress import progress_file
from gradacc_lessons.whole_file import open_to_others, write_whole

KEY_FILE = "certificate-key.pem"
PREFIX = "did:key:z"
ED25519 = b"\xed\x01"
"""The multicodec of an Ed25519 public key."""
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
LARGEST = 10_000
"""Bytes of a file that holds a key; a key of ours takes 120."""


@dataclass(frozen=True)
class SigningKey:
    """A private key. It is written to its own file and nowhere else."""

    private: Ed25519PrivateKey
    """What signs."""

    @property
    def did(self) -> str:
        """The public key, for others."""
        return did_of(self.private.public_key())

    def __repr__(self) -> str:
        return f"SigningKey({self.did})"


def did_of(public: Ed25519PublicKey) -> str:
    """The did:key of a public key."""
    number, digits = int.from_bytes(ED25519 + public.public_bytes_raw(), "big"), ""
    while number:
        number, digit = divmod(number, len(BASE58))
        digits = BASE58[digit] + digits
    return PREFIX + digits


def key_of(did: str) -> Ed25519PublicKey:
    """The public key of a did:key; CertificateError if it is not one of an Ed25519 key, written as did_of does."""
    digits, number = did.removeprefix(PREFIX), 0
    if did.startswith(PREFIX) and len(digits) <= 60 and all(digit in BASE58 for digit in digits):
        for digit in digits:
            number = number * len(BASE58) + BASE58.index(digit)
        raw = number.to_bytes(45, "big").lstrip(b"\0")
        if raw.startswith(ED25519) and len(raw) == 34:
            key = Ed25519PublicKey.from_public_bytes(raw[2:])
            if did_of(key) == did:
                return key
    raise CertificateError(
        f"{did[:80]!r} is no public key of the kind that certificates use (did:key:z6Mk… for Ed25519).",
        f"{did[:80]!r} is geen publieke sleutel van de soort die certificaten gebruiken (did:key:z6Mk… voor Ed25519).",
    )


def read_did(key: str) -> str:
    """The did:key of what a user calls a key: a did:key, or a file that holds one or a public key in PEM."""
    if key.startswith("did:"):
        return did_of(key_of(key))
    path = expanded(key)
    if not path.is_file():
        raise CertificateError(
            f"{key[:80]!r} is neither a did:key nor a file with a public key.",
            f"{key[:80]!r} is geen did:key en ook geen bestand met een publieke sleutel.",
        )
    raw = _start_of(path)
    if b"PRIVATE KEY" in raw:
        raise CertificateError(
            f"{path} holds a private key. Never give that away; `gradacc certificate key` prints the public one.",
            f"In {path} staat een privésleutel. Geef die nooit weg; `gradacc certificate key` toont de publieke.",
        )
    if b"BEGIN PUBLIC KEY" in raw:
        with suppress(ValueError):
            public = load_pem_public_key(raw)
            if isinstance(public, Ed25519PublicKey):
                return did_of(public)
    try:
        return did_of(key_of(raw.decode("utf-8", "replace").strip()))
    except CertificateError:  # it would show what is in the file
        raise CertificateError(
            f"{path} holds no public key of the kind that certificates use: a did:key, or Ed25519 in PEM.",
            f"In {path} staat geen publieke sleutel van de soort die certificaten gebruiken: een did:key, of Ed25519 "
            "in PEM.",
        ) from None


def own_key(file: Path | None = None) -> SigningKey:
    """The learner's own key, made at first use beside the progress file; or the key in `file`, likewise.

    CertificateError as for key_in.
    """
    file = file or progress_file().parent / KEY_FILE
    if not file.exists():
        _make(file)
    return key_in(file, made_anew=True)


def key_in(file: Path, *, made_anew: bool = False) -> SigningKey:
    """The private key in a file; CertificateError if it holds no Ed25519 key, or can be read by others.

    `made_anew` says that another key is made where the file is missing, so that the user may put it aside.
    """
    try:
        private = load_pem_private_key(_start_of(file), password=None)
    except (ValueError, TypeError):
        private = None
    if not isinstance(private, Ed25519PrivateKey):
        en, nl = (" Put it aside, and a new one is made.", " Zet het opzij, dan wordt er een nieuwe gemaakt.")
        raise CertificateError(
            f"{file} holds no key that can be used here.{en if made_anew else ''}",
            f"In {file} staat geen sleutel die hier bruikbaar is.{nl if made_anew else ''}",
        )
    if open_to_others(file):
        mode = f"{stat.S_IMODE(file.stat().st_mode):o}"
        en, nl = (" Otherwise put it aside, and a new one is made.", " Zet het anders opzij, dan komt er een nieuwe.")
        raise CertificateError(
            f"{file} may be read by others (its mode is {mode}), so its signature proves nothing. "
            f"Run `chmod 600 {file}` if you know that nobody has read it.{en if made_anew else ''}",
            f"{file} kan door anderen gelezen worden (de rechten zijn {mode}), dus de handtekening "
            f"bewijst niets. Voer `chmod 600 {file}` uit als je weet dat niemand het gelezen heeft."
            f"{nl if made_anew else ''}",
        )
    return SigningKey(private)


def _start_of(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(LARGEST)


def _make(file: Path) -> None:
    """Of two processes that make it at once, the first one's key stays."""
    raw = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        write_whole(file, raw, private=True, over=False)

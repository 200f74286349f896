"""A certificate as the short text that a QR code holds: a photograph of the picture is enough to verify it.

The text is "GRADACC1:" and base32 of the signature and the deflated credential. Header, claims and id follow from
the credential, so the very token that was signed comes back, and is then read like any other. The 1 stands for the
dictionary of words that the deflating begins with (RFC 1950), which can never change; another one gets the 2.
"""

import zlib
from base64 import b32decode, b32encode
from functools import cache
from pathlib import Path

from gradacc_lessons import canonical
from gradacc_lessons.certificate import tokens
from gradacc_lessons.certificate.credential import Credential, claims_of, content_id
from gradacc_lessons.certificate.problem import CertificateError

MARK = "GRADACC1:"
"""What the text begins with. It has only characters that a QR code packs tightly, and so has base32."""
SIGNATURE = 64
"""Bytes of an Ed25519 signature."""
LARGEST = 60_000
"""Bytes of a credential; one with twenty lessons has 7,000."""


def compact(credential: Credential) -> str:
    """The text for a QR code."""
    content = {key: value for key, value in credential.content.items() if key != "id"}
    deflate = zlib.compressobj(9, zdict=_dictionary())
    deflated = deflate.compress(canonical.canonical(content)) + deflate.flush()
    signature = tokens.decoded(credential.token.rpartition(".")[2])
    return MARK + b32encode(signature + deflated).decode("ascii").rstrip("=")


def token_of(text: str) -> str:
    """The token that `compact` took apart; CertificateError if the text is not whole. Its signature is not checked."""
    digits = text.removeprefix(MARK)
    try:
        if len(digits) > 2 * LARGEST:
            raise ValueError("longer than any certificate")
        raw = b32decode(digits + "=" * (-len(digits) % 8))
        inflate = zlib.decompressobj(zdict=_dictionary())
        content = canonical.read(inflate.decompress(raw[SIGNATURE:], LARGEST))
        if not inflate.eof or inflate.unused_data:
            raise ValueError("not the whole text, or more than that")
        content["id"] = content_id(content)
        return tokens.assembled(claims_of(content), content["issuer"]["id"], tokens.CREDENTIAL, raw[:SIGNATURE])
    except (ValueError, TypeError, KeyError, OverflowError, zlib.error):
        raise CertificateError(
            "the text of its QR code is not whole", "de tekst van de QR-code is niet compleet"
        ) from None


@cache
def _dictionary() -> bytes:
    return Path(__file__).with_name("dictionary_1.txt").read_bytes()

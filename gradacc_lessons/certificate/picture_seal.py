"""A picture that carries its certificate, and a seal over the picture, so that neither can be changed unseen.

The credential is baked in as Open Badges 3.0 says (5.3): an iTXt chunk in a PNG, an element in an SVG. What the
picture shows is signed too: the seal at its end, a token by the same key, holds the digest of all bytes before it.
"""

import re
import struct
import zlib
from hashlib import sha256

from gradacc_lessons.certificate import tokens
from gradacc_lessons.certificate.credential import Credential
from gradacc_lessons.certificate.keys import SigningKey
from gradacc_lessons.certificate.problem import CertificateError
from gradacc_lessons.certificate.reading import read_credential

PNG = b"\x89PNG\r\n\x1a\n"
END = struct.pack(">I4sI", 0, b"IEND", zlib.crc32(b"IEND"))
"""A PNG's last chunk."""
MOST_CHUNKS = 10_000
"""Of a PNG; one of ours has fewer than a hundred, and millions of empty ones would take seconds."""
BADGE, SEAL = b"openbadgecredential", b"gradacc-seal"
"""Keywords of our chunks; the first is the specification's."""
NAMESPACE = b' xmlns:openbadges="https://purl.imsglobal.org/ob/v3p0"'
BADGE_IN_SVG = re.compile(rb'<openbadges:credential verify="([^"]+)"')
SEAL_IN_SVG = re.compile(rb'<metadata id="gradacc-seal">([\w.-]+)</metadata>\n</svg>\n\Z')


def seal(picture: bytes, credential: Credential, key: SigningKey) -> bytes:
    """The picture, a PNG or an SVG, with the credential and the seal in it."""
    token = credential.token.encode("ascii")
    if picture.startswith(PNG):
        body = picture.removesuffix(END) + _chunk(BADGE, token)
        return body + _chunk(SEAL, _seal_of(body, credential, key)) + END
    start = picture.index(b">", picture.index(b"<svg"))
    head, rest = picture[:start] + NAMESPACE + b">\n", picture[start + 1 :].rstrip().removesuffix(b"</svg>")
    body = head + b'<openbadges:credential verify="' + token + b'"/>' + rest
    return body + _end_of_svg(_seal_of(body, credential, key))


def read_sealed(picture: bytes) -> Credential:
    """The credential in a picture that is as it was sealed by its issuer; CertificateError says what is wrong."""
    body, found, sealed = _parts_of_png(picture) if picture.startswith(PNG) else _parts_of_svg(picture)
    if found is None:
        raise CertificateError("there is no certificate in the picture", "er zit geen certificaat in de afbeelding")
    credential = read_credential(found.decode("ascii", "replace"))
    if sealed is None:
        raise CertificateError(
            "there is no seal over the picture, so it may show something else than the certificate in it; ask for the "
            ".jwt file, or for the picture as it was issued",
            "er zit geen zegel op de afbeelding, dus die kan iets anders tonen dan het certificaat erin; vraag om het "
            ".jwt-bestand, of om de afbeelding zoals die is uitgegeven",
        )
    issuer, claims = tokens.read(sealed.decode("ascii", "replace"), tokens.SEAL)
    if issuer != credential.issuer or claims != _claims(body, credential):
        raise CertificateError(
            "the picture was changed since it was issued", "de afbeelding is veranderd sinds die is uitgegeven"
        )
    return credential


def _seal_of(body: bytes, credential: Credential, key: SigningKey) -> bytes:
    return tokens.sign(_claims(body, credential), key, tokens.SEAL).encode("ascii")


def _claims(body: bytes, credential: Credential) -> dict[str, str]:
    return {"credential": credential.id, "picture": sha256(body).hexdigest()}


def _parts_of_png(picture: bytes) -> tuple[bytes, bytes | None, bytes | None]:
    """What the seal covers, the credential's token, and the seal."""
    at, body, badge = len(PNG), b"", None
    for _ in range(MOST_CHUNKS):
        if at + 12 > len(picture):
            break
        length = int.from_bytes(picture[at : at + 4], "big")
        chunk = picture[at : at + 12 + length]
        if _text(chunk, BADGE) is not None:
            badge = _text(chunk, BADGE)
        if (last := _text(chunk, SEAL)) is not None:
            body = picture[:at]
            # Nothing comes after it: neither bytes nor another way to write the same seal.
            return body, badge, last if picture == body + _chunk(SEAL, last) + END else None
        at += len(chunk)
    return body, badge, None


def _parts_of_svg(picture: bytes) -> tuple[bytes, bytes | None, bytes | None]:
    badges, end = BADGE_IN_SVG.findall(picture), SEAL_IN_SVG.search(picture)
    badge = badges[0] if len(badges) == 1 else None
    return (picture[: end.start()], badge, end[1]) if end else (picture, badge, None)


def _end_of_svg(sealed: bytes) -> bytes:
    return b'<metadata id="gradacc-seal">' + sealed + b"</metadata>\n</svg>\n"


def _chunk(keyword: bytes, text: bytes) -> bytes:
    """An iTXt chunk: keyword, not compressed, no language, no translated keyword, text."""
    data = b"iTXt" + keyword + b"\0\0\0\0\0" + text
    return struct.pack(">I", len(data) - 4) + data + struct.pack(">I", zlib.crc32(data))


def _text(chunk: bytes, keyword: bytes) -> bytes | None:
    start = b"iTXt" + keyword + b"\0\0\0\0\0"
    return chunk[4 + len(start) : -4] if chunk[4:].startswith(start) else None

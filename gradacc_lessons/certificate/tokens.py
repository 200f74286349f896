"""Signed tokens: JWTs with EdDSA, read so strictly that one content has one token.

The header holds alg, kid and typ, and nothing else. The kid is the issuer's did:key, so it says whose signature to
check; whether that issuer is to be believed is another question, which `verify` answers.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from jwt import PyJWS
from jwt.exceptions import PyJWTError

from gradacc_lessons import canonical
from gradacc_lessons.certificate.keys import PREFIX, SigningKey, key_of
from gradacc_lessons.certificate.problem import CertificateError

ALGORITHM = "EdDSA"
CREDENTIAL, REVOCATIONS, SEAL = "JWT", "gradacc-revocations+jwt", "gradacc-seal+jwt"
"""Kinds of token: the header's typ. Open Badges 3.0 asks for JWT; what is signed as one kind is not read as another."""
LONGEST = 200_000
"""Characters; a certificate takes about 5,000, a list of revocations with as many as 1,800 fits."""
TOKEN = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*")
OWN_KEYS = ("jwk", "jku", "x5c", "x5u", "x5t", "x5t#S256")
"""Header fields by which a token could bring a key of its own."""


def sign(claims: dict[str, Any], key: SigningKey, kind: str) -> str:
    """The token of `claims`; the same claims and key give the same token."""
    headers = {"kid": _kid(key.did), "typ": kind}
    return PyJWS().encode(canonical.canonical(claims), key.private, ALGORITHM, headers, sort_headers=True)


def assembled(claims: dict[str, Any], did: str, kind: str, signature: bytes) -> str:
    """The token that has this signature, which may be wrong; `read` finds out."""
    header = {"alg": ALGORITHM, "kid": _kid(did), "typ": kind}
    return ".".join(map(_base64, (canonical.canonical(header), canonical.canonical(claims), signature)))


def read(token: str, kind: str) -> tuple[str, dict[str, Any]]:
    """The issuer's did:key and the claims of a token whose signature is right; CertificateError says what is wrong."""
    if len(token) > LONGEST or not TOKEN.fullmatch(token):
        raise CertificateError("it is not a signed token", "het is geen ondertekend token")
    did = _issuer(token, kind)
    try:
        payload = PyJWS().decode(token, key_of(did), algorithms=[ALGORITHM])
    except (PyJWTError, ValueError):
        raise _changed() from None
    claims = _json(payload)
    _, body, signature = token.split(".")
    if [_base64(payload), _base64(decoded(signature))] != [body, signature] or canonical.canonical(claims) != payload:
        raise CertificateError(
            "it is not written as a certificate is: its signature fits, its form does not",
            "het is niet geschreven zoals een certificaat: de handtekening klopt, de vorm niet",
        )
    return did, claims


def decoded(part: str) -> bytes:
    """The bytes of one of a token's three parts; CertificateError if it is no base64."""
    try:
        return urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        raise _changed() from None


def _issuer(token: str, kind: str) -> str:
    """Whose signature the header names."""
    head = token.partition(".")[0]
    header = _json(decoded(head))
    algorithm = header.get("alg")
    if algorithm != ALGORITHM:
        named = str(algorithm)[:20]
        raise CertificateError(
            f"it asks for the algorithm {named!r}, and only {ALGORITHM} is accepted",
            f"het vraagt om het algoritme {named!r}, en alleen {ALGORITHM} wordt geaccepteerd",
        )
    if own := [field for field in OWN_KEYS if field in header]:
        raise CertificateError(
            f"it brings a key of its own in its header ({own[0]}), which is never believed",
            f"het brengt in de header een eigen sleutel mee ({own[0]}), en die wordt nooit geloofd",
        )
    if header.get("typ") != kind:
        raise CertificateError("it is a token of another kind", "het is een token van een andere soort")
    did = str(header.get("kid")).partition("#")[0]
    key_of(did)
    if header != {"alg": ALGORITHM, "kid": _kid(did), "typ": kind} or _base64(canonical.canonical(header)) != head:
        raise CertificateError(
            "its header holds something that a certificate's does not",
            "in de header staat iets dat er bij een certificaat niet staat",
        )
    return did


def _kid(did: str) -> str:
    return f"{did}#{did.removeprefix(PREFIX[:-1])}"


def _json(raw: bytes) -> dict[str, Any]:
    try:
        value = canonical.read(raw, LONGEST)
    except canonical.JsonError as error:
        raise CertificateError(f"it cannot be read: {error}", f"het kan niet gelezen worden: {error}") from None
    if not isinstance(value, dict):
        raise CertificateError("it holds no object", "er staat geen object in")
    return value


def _base64(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode("ascii").rstrip("=")


def _changed() -> CertificateError:
    return CertificateError(
        "it was changed since it was issued, or was not signed by the key that it names",
        "het is veranderd sinds het is uitgegeven, of niet ondertekend met de sleutel die erin genoemd staat",
    )

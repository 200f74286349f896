"""Certificates to test with: keys that are always the same, and tokens that nobody should accept."""

import json
from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gradacc_lessons.certificate import tokens
from gradacc_lessons.certificate.credential import Credential, claims_of, content_id
from gradacc_lessons.certificate.issue import issue
from gradacc_lessons.certificate.keys import SigningKey

AT = datetime(2026, 11, 30, 17, 4, 5, tzinfo=UTC)
LESSONS = {"00_start_here": 1.0, "01_accumulate": 0.955, "02_scale_the_loss": 0.8}


@cache
def key(number: int = 1) -> SigningKey:
    return SigningKey(Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32))


def made(name: str = "Ada Lovelace", **changes: Any) -> Credential:
    wishes: dict[str, Any] = {"key": key(), "issuer_name": None, "kind": "core", "valid_from": AT, **changes}
    return issue(name, wishes.pop("lessons", LESSONS), **wishes)


def part(value: Any) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
    return urlsafe_b64encode(raw).decode().rstrip("=")


def forged(header: Any, payload: Any, signer: SigningKey | None = None) -> str:
    """A token with any header and payload, signed with EdDSA if there is a signer."""
    signed = f"{part(header)}.{part(payload)}"
    return f"{signed}.{part(signer.private.sign(signed.encode())) if signer else ''}"


def header_of(signer: SigningKey, **changes: Any) -> dict[str, Any]:
    mark = signer.did.removeprefix("did:key:")
    return {"alg": "EdDSA", "kid": f"{signer.did}#{mark}", "typ": tokens.CREDENTIAL, **changes}


def resigned(content: dict[str, Any], signer: SigningKey) -> str:
    """The content with an id that fits, signed anew."""
    content = {**content, "id": content_id(content)}
    return tokens.sign(claims_of(content), signer, tokens.CREDENTIAL)

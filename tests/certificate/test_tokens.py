"""Tokens that somebody might try: another algorithm, a key of their own, another way to write the same."""

import hashlib
import hmac
import json

import jwt
import pytest
from certificate.made import forged, header_of, key, made, part, resigned
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as generate_rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from gradacc_lessons import canonical
from gradacc_lessons.certificate import tokens
from gradacc_lessons.certificate.credential import claims_of
from gradacc_lessons.certificate.problem import CertificateError
from gradacc_lessons.certificate.reading import read_credential

CONTENT = made().content
CLAIMS = claims_of(CONTENT)
PAYLOAD = canonical.canonical(CLAIMS)


def refused(token: str, words: str) -> None:
    with pytest.raises(CertificateError, match=words) as caught:
        read_credential(token)
    assert caught.value.text.nl != caught.value.text.en


def test_the_same_claims_and_key_are_the_same_token_and_come_back():
    token = tokens.sign(CLAIMS, key(), tokens.CREDENTIAL)
    assert token == made().token == forged(header_of(key()), PAYLOAD, key())
    assert tokens.read(token, tokens.CREDENTIAL) == (key().did, CLAIMS)


@pytest.mark.parametrize(
    "algorithm",
    ["none", "None", "NONE", "", None, 0, [], "HS256", "ES256", "RS256", "EdDSA ", "eddsa", "Ed25519", "Ed448"],
)
def test_another_algorithm_is_refused_even_with_a_good_signature(algorithm):
    refused(forged(header_of(key(), alg=algorithm), PAYLOAD, key()), "algorithm")
    refused(forged(header_of(key(), alg=algorithm), PAYLOAD), "algorithm|not a signed token")


def test_no_algorithm_at_all_is_refused():
    header = header_of(key())
    del header["alg"]
    refused(forged(header, PAYLOAD, key()), "algorithm 'None'")
    refused(forged(header_of(key()), PAYLOAD), "changed")


def test_the_public_key_as_an_hmac_secret_is_refused():
    signed = f"{part(header_of(key(), alg='HS256'))}.{part(PAYLOAD)}"
    public = key().private.public_key()
    for secret in (public.public_bytes_raw(), public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)):
        digest = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
        refused(f"{signed}.{part(digest)}", "only EdDSA")


def test_signatures_of_other_kinds_of_keys_are_refused():
    headers = {"kid": header_of(key())["kid"]}
    elliptic = jwt.encode(CLAIMS, generate_private_key(SECP256R1()), "ES256", headers)
    rsa = jwt.encode(CLAIMS, generate_rsa(65537, 2048), "RS256", headers)
    refused(elliptic, "'ES256'")
    refused(rsa, "'RS256'")


JWK = {"kty": "OKP", "crv": "Ed25519", "x": part(key(2).private.public_key().public_bytes_raw())}


@pytest.mark.parametrize("field", tokens.OWN_KEYS)
@pytest.mark.parametrize("signer", [1, 2])
def test_a_key_inside_the_token_is_never_believed(field, signer):
    value = JWK if field == "jwk" else "https://example.org/key"
    refused(
        forged(header_of(key(), **{field: value}), PAYLOAD, key(signer)),
        f"key of its own in its header \\({field}\\)".replace("#", "."),
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"crit": ["b64"], "b64": False},
        {"zip": "DEF"},
        {"cty": "JWT"},
        {"b64": False},
        {"crit": []},
        {"exp": 1},
        {"iss": "x"},
    ],
)
def test_anything_else_in_the_header_is_refused(changes):
    refused(forged(header_of(key(), **changes), PAYLOAD, key()), "header holds|changed")


@pytest.mark.parametrize(
    "kid",
    [
        None,
        1,
        [],
        {},
        "",
        "#",
        "../../etc/passwd",
        "/dev/null",
        "did:web:example.org#1",
        "' OR 1=1",
        "did:key:z6Mk#x",
        key(2).did,
        f"{key().did}#other",
        f"{key().did}",
        f"{key().did}#{key(2).did[8:]}",
    ],
)
def test_a_kid_that_is_not_the_issuers_key_is_refused(kid):
    refused(forged(header_of(key(), kid=kid), PAYLOAD, key()), "no public key|header holds|changed")


def test_a_kid_that_names_the_forgers_key_does_not_make_them_the_issuer():
    refused(forged(header_of(key(2)), PAYLOAD, key(2)), "issuer, id or times")


def test_what_is_signed_as_one_kind_is_not_read_as_another():
    for kind in (tokens.SEAL, tokens.REVOCATIONS):
        refused(tokens.sign(CLAIMS, key(), kind), "another kind")
        with pytest.raises(CertificateError, match="another kind"):
            tokens.read(made().token, kind)


def other_ways_to_write(token: str) -> dict[str, str]:
    head, body, signature = token.split(".")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    last = alphabet[alphabet.index(signature[-1]) + 1]
    spaced = json.dumps(CLAIMS, sort_keys=True).encode()
    unsorted = json.dumps(dict(reversed(CLAIMS.items())), separators=(",", ":")).encode()
    header = json.dumps(header_of(key())).encode()
    unsorted_header = json.dumps(dict(reversed(header_of(key()).items()))).encode().replace(b" ", b"")
    twice = PAYLOAD.replace(b'{"@context"', b'{"iss":"x","@context"', 1)
    return {
        "trailing bits": f"{head}.{body}.{signature[:-1]}{last}",
        "padding": f"{head}.{body}.{signature}==",
        "line": f"{head}.{body}.{signature}\n",
        "fourth part": f"{token}.x",
        "header in another order": forged(unsorted_header, PAYLOAD, key()),
        "header with spaces": forged(header, PAYLOAD, key()),
        "header with a key twice": forged(header.replace(b'{"alg"', b'{"alg":"none","alg"'), PAYLOAD, key()),
        "payload with spaces": forged(header_of(key()), spaced, key()),
        "payload in another order": forged(header_of(key()), unsorted, key()),
        "payload with a key twice": forged(header_of(key()), twice, key()),
        "payload no json": forged(header_of(key()), b"\xff\xfe", key()),
        "payload a list": forged(header_of(key()), [CLAIMS], key()),
        "payload deep": forged(header_of(key()), b"[" * 100_000 + b"]" * 100_000, key()),
        "too long": forged(header_of(key()), b" " * 300_000, key()),
        "payload not a number": forged(header_of(key()), b'{"nbf":NaN}', key()),
    }  # fmt: skip


@pytest.mark.parametrize("way", other_ways_to_write(made().token))
def test_one_content_has_one_token(way):
    token = other_ways_to_write(made().token)[way]
    with pytest.raises(CertificateError):
        read_credential(token)


def deep(content: dict, path: str, value: object) -> dict:
    """A copy with another value at a.b.0.c, or without it for ...."""
    copy = json.loads(json.dumps(content))
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    at = copy
    for step in way:
        at = at[step]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return copy


WRONG = [
    ("@context", ["https://www.w3.org/ns/credentials/v2"], "@context"),
    ("@context", ..., "@context"),
    ("type", ["VerifiableCredential"], "type"),
    ("issuer.name", ..., "issuer.name"),
    ("issuer.name", "Ada\nLovelace", "issuer.name"),
    ("issuer.id", 1, "issuer.id"),
    ("name", "x\x1b[2J", "name"),
    ("validFrom", "2026-11-30", "validFrom"),
    ("validFrom", "2026-13-30T17:04:05Z", "validFrom"),
    ("validFrom", "2026-11-30T17:04:05+00:00", "validFrom"),
    ("validUntil", 5, "validUntil"),
    ("credentialSubject.identifier", [], "credentialSubject"),
    ("credentialSubject.identifier.0.hashed", True, "hashed"),
    ("credentialSubject.identifier.0.identityHash", "\u202eada", "identityHash"),
    ("credentialSubject.identifier.0.identityType", "emailAddress", "identityType"),
    ("credentialSubject.result", [], "credentialSubject"),
    ("credentialSubject.result.0.value", "101", "credentialSubject"),
    ("credentialSubject.result.0.value", "080", "credentialSubject"),
    ("credentialSubject.result.0.value", "٨٠", "credentialSubject"),
    ("credentialSubject.result.0.value", "9" * 5000, "credentialSubject"),
    ("credentialSubject.result.0.resultDescription", "urn:x", "credentialSubject"),
    ("credentialSubject.achievement.inLanguage", "fr", "inLanguage"),
    ("credentialSubject.achievement.resultDescription.0.name", ..., "resultDescription"),
    ("proof", {"type": "x"}, "proof"),
    ("proof", None, "proof"),
]


@pytest.mark.parametrize(
    ("path", "value", "words"), WRONG, ids=[f"{path}-{str(value)[:20]}" for path, value, _ in WRONG]
)
def test_a_part_that_is_missing_or_of_another_kind_is_named(path, value, words):
    try:
        token = resigned(deep(CONTENT, path, value), key())
    except (ValueError, TypeError):  # not even claims follow from it: write them as they were
        content = deep(CONTENT, path, value)
        token = forged(header_of(key()), canonical.canonical({**CLAIMS, **content}), key())
    refused(token, words)


@pytest.mark.parametrize("claim", ["iss", "jti", "nbf", "exp", "sub", "id"])
@pytest.mark.parametrize("value", [None, 0, "x"])
def test_claims_that_contradict_the_credential_are_refused(claim, value):
    with pytest.raises(CertificateError):
        read_credential(forged(header_of(key()), canonical.canonical({**CLAIMS, claim: value}), key()))


def test_an_id_that_is_not_the_digest_is_refused():
    content = {**CONTENT, "id": CONTENT["id"][:-1] + "0"}
    refused(tokens.sign(claims_of(content), key(), tokens.CREDENTIAL), "digest")

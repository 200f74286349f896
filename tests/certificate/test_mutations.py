"""Certificates that were changed in any way: none is accepted that says something else, each in a moment."""

import json
import random
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from certificate.made import key, made

from gradacc_lessons.certificate import keyring
from gradacc_lessons.certificate.compact import compact
from gradacc_lessons.certificate.revocations import revoke
from gradacc_lessons.certificate.verify import verify

FORMS = ("png", "svg", "jwt", "json", "code")
SLOWEST = 2.0
"""Seconds that an answer may take."""


def damaged(raw: bytes, dice: random.Random) -> bytes:
    """Bytes changed, taken out, doubled, moved, or cut off, here and there."""
    for _ in range(dice.choice((1, 1, 1, 2, 5))):
        at, length = dice.randrange(len(raw) + 1), dice.choice((1, 1, 2, 7, 40))
        piece = raw[at : at + length]
        raw = dice.choice(
            (
                raw[:at] + bytes(byte ^ (1 << dice.randrange(8)) for byte in piece) + raw[at + length :],
                raw[:at] + raw[at + length :],
                raw[:at] + piece + raw[at:],
                raw[:at] + dice.randbytes(length) + raw[at:],
                raw[:at],
                raw[:at] + piece[::-1] + raw[at + length :],
                raw[:at] + piece.swapcase() + raw[at + length :],
            )
        )
        raw = raw or b"x"
    return raw


def edited(value, dice: random.Random):
    """The same JSON with one part changed, added, or taken out."""
    if isinstance(value, dict) and value:
        name, how = dice.choice(sorted(value)), dice.randrange(8)
        if how == 0:
            return {each: part for each, part in value.items() if each != name}
        if how == 1:
            added = dice.choice(("alg", "jwk", "exp", "sub", "x", name.upper()))
            return {**value, added: dice.choice((None, "none", 0, {}))}
        return {**value, name: edited(value[name], dice)}
    if isinstance(value, list) and value:
        at = dice.randrange(len(value))
        middle = dice.choice(([], [value[at], value[at]], [edited(value[at], dice)]))
        return [*value[:at], *middle, *value[at + 1 :]]
    return dice.choice((None, True, 0, -1, 1e300, "", "100", "EdDSA ", [], {}, f"{value}\u200b", f"{value} "))


def edited_token(token: str, dice: random.Random) -> str:
    """A token with its header or its claims edited, and the signature as it was."""
    parts = token.split(".")
    which = dice.randrange(2)
    value = json.loads(urlsafe_b64decode(parts[which] + "=="))
    again = json.dumps(edited(value, dice), separators=(",", ":"), sort_keys=True)
    parts[which] = urlsafe_b64encode(again.encode()).decode().rstrip("=")
    return ".".join(parts)


def mutant(form: str, raw: bytes, dice: random.Random) -> bytes:
    if form == "jwt" and dice.random() < 0.5:
        return edited_token(raw.decode().strip(), dice).encode()
    if form == "json" and dice.random() < 0.5:
        return json.dumps(edited(json.loads(raw), dice)).encode()
    if form in ("png", "svg") and dice.random() < 0.3:  # where its words of trust are
        start = raw.rindex(b"gradacc-seal") - 30
        return raw[:start] + damaged(raw[start:], dice)
    return damaged(raw, dice)


def says_the_same(form: str, raw: bytes, original: bytes) -> bool:
    """Whether a strict reader finds the same in both: of JSON the order and spaces are free, of text those around."""
    if form in ("png", "svg"):
        return raw == original
    if form != "json":
        return raw.strip() == original.strip()
    pairs = []
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=lambda each: pairs.append(each) or dict(each))
    except ValueError:
        return False
    return value == json.loads(original) and all(len(each) == len(dict(each)) for each in pairs)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("start", "count"), [(0, 20), pytest.param(20, 1980, marks=pytest.mark.long)])
def test_nothing_that_was_changed_is_accepted(ada, files, tmp_path, form, start, count):
    keyring.trust(key().did, "The issuer")
    original = {**files, "code": compact(ada).encode()}[form]
    file = tmp_path / f"certificate.{form}"
    changed = 0
    for number in range(start, start + count):
        raw = mutant(form, original, random.Random(f"{form} {number}"))
        file.write_bytes(raw)
        began = time.monotonic()
        verdict = verify(file)
        assert time.monotonic() - began < SLOWEST, number
        if says_the_same(form, raw, original):
            assert verdict.credential == ada, number
        else:
            changed += 1
            assert (verdict.exit_code, verdict.credential) == (1, None), number
            assert verdict.text.en.startswith("✘ Not valid: ") and "\n" not in verdict.text.en, number
    assert changed > 0.7 * count


@pytest.mark.parametrize(("start", "count"), [(0, 20), pytest.param(20, 1980, marks=pytest.mark.long)])
def test_a_list_of_revocations_that_was_changed_never_lets_a_revoked_one_through(ada, tmp_path, start, count):
    keyring.trust(key().did, "The issuer")
    file = tmp_path / "revoked.jwt"
    revoke(ada.id, file, key())
    revoke(made("Bob").id, file, key())
    original = file.read_bytes()
    for number in range(start, start + count):
        dice = random.Random(f"list {number}")
        raw = edited_token(original.decode().strip(), dice).encode() if number % 2 else damaged(original, dice)
        file.write_bytes(raw)
        assert verify(ada.token, revoked=[file]).exit_code == 1, number

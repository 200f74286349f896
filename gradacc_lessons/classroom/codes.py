"""Class codes: what a teacher hands to each learner, and what that learner's own numbers follow from.

A code is the class, 125 bits of HMAC-SHA256(class key, roster id), and three letters against slips of the pen. It
holds no name and no number of the learner; who knows the class key and the roster knows whose it is.
"""

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass

from gradacc_lessons.classroom.problem import ClassError

CLASS_LETTERS, SECRET_LETTERS, CHECK_LETTERS, GROUP = 6, 25, 3, 5
CLASS_ID = re.compile(rf"[a-z2-7]{{{CLASS_LETTERS}}}")
_SLIPS = str.maketrans({"0": "o", "1": "l", "8": "b"})
"""Digits that base32 does not have, for the letters they look like."""


@dataclass(frozen=True)
class ClassCode:
    """A code that was read."""

    text: str
    """The code as it is always written: small letters, groups, hyphens."""
    class_id: str
    """Which class."""

    @property
    def handle(self) -> str:
        """How a submission names its learner: it says nothing without the class key. 16 hexadecimal digits."""
        return hashlib.sha256(f"learner\n{self.text}".encode()).hexdigest()[:16]

    def proof(self, checksum: str) -> str:
        """That who wrote a submission with this checksum had the code. 64 hexadecimal digits."""
        return hmac.new(self.text.encode(), checksum.encode(), hashlib.sha256).hexdigest()


def new_class_id() -> str:
    """The name of a new class in codes."""
    return _letters(secrets.token_bytes(5), CLASS_LETTERS)


def code_for(class_key: bytes, class_id: str, learner_id: str) -> ClassCode:
    """The code of the learner with this id in the roster."""
    secret = hmac.new(class_key, f"{class_id}\n{learner_id}".encode(), hashlib.sha256).digest()
    return ClassCode(_written(class_id + _letters(secret, SECRET_LETTERS)), class_id)


def read_code(text: str) -> ClassCode:
    """A code as somebody typed it: capitals, spaces and missing hyphens do not matter. ClassError if it is none."""
    plain = re.sub(r"[\s-]", "", text).lower().translate(_SLIPS)
    wanted = CLASS_LETTERS + SECRET_LETTERS
    if not re.fullmatch(rf"[a-z2-7]{{{wanted + CHECK_LETTERS}}}", plain) or plain[wanted:] != _check(plain[:wanted]):
        raise ClassError(
            "not_a_code",
            "This is not a class code: a letter is missing or wrong. Copy it again from what your teacher gave you.",
            "Dit is geen klascode: er ontbreekt een letter of er is er een verkeerd. Neem hem opnieuw over van wat je "
            "docent je gaf.",
        )
    return ClassCode(_written(plain[:wanted]), plain[:CLASS_LETTERS])


def _written(letters: str) -> str:
    rest = letters[CLASS_LETTERS:]
    groups = [rest[at : at + GROUP] for at in range(0, len(rest), GROUP)]
    return "-".join([letters[:CLASS_LETTERS], *groups, _check(letters)])


def _check(letters: str) -> str:
    return _letters(hashlib.sha256(letters.encode()).digest(), CHECK_LETTERS)


def _letters(raw: bytes, count: int) -> str:
    return base64.b32encode(raw).decode("ascii").lower()[:count]

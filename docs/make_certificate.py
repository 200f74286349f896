"""Make docs/certificate.svg, the certificate of the README: `python docs/make_certificate.py`.

It is a real one, which `gradacc verify` reads. Its key stands below, so its signature proves nothing.
"""

from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from gradacc_lessons.certificate.earned import CORE
from gradacc_lessons.certificate.files import save
from gradacc_lessons.certificate.issue import issue
from gradacc_lessons.certificate.keys import SigningKey
from gradacc_lessons.course import course_folder

FOLDER = Path(__file__).parent
KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(sha256(b"an example's key, known to everybody").digest()))
ISSUED = datetime(2026, 6, 1, 12, tzinfo=UTC)


def main() -> None:
    """Issue it and write the picture."""
    lessons = sorted(bank.stem for bank in course_folder("quizzes").glob("*.yaml") if bank.stem[:2] in CORE)
    shares = dict.fromkeys(lessons, 1.0)
    example = issue("Your Name", shares, key=KEY, issuer_name=None, kind="core", valid_from=ISSUED)
    save(example, FOLDER, key=KEY, forms=("svg",), name="certificate")


if __name__ == "__main__":
    main()

"""A name as somebody writes it, and what no name may hold."""

import unicodedata

from gradacc_lessons.certificate.problem import CertificateError

LONGEST = 200
"""Characters in a name."""
JOINERS = "\u200c\u200d"
"""Format characters that names need: Persian and Indic scripts, and emoji of several parts."""
CONTROLS = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
"""Unicode's control and format characters, half characters, and what is private or breaks the line. What is not
assigned yet may be so for whoever has a newer Python."""


def clean_name(name: str) -> str:
    """The name with its spaces tidied and its accents composed; markup in it is text like any other.

    CertificateError for an empty name, one longer than LONGEST, and one with control characters: they could make
    the picture show something else than what is signed.
    """
    shown = " ".join(part for part in unicodedata.normalize("NFC", name).split(" ") if part)
    for char in shown:
        if unicodedata.category(char) in CONTROLS and char not in JOINERS:
            code = f"U+{ord(char):04X}"
            raise CertificateError(
                f"The name holds the control character {code}; leave it out.",
                f"In de naam staat het stuurteken {code}; laat dat weg.",
            )
    if not any(unicodedata.category(char)[0] in "LNS" for char in shown):
        raise CertificateError(
            'A certificate needs the name that it is for, as in --name "Your name".',
            'Een certificaat heeft de naam nodig van wie het is, zoals in --name "Jouw naam".',
        )
    if len(shown) > LONGEST:
        raise CertificateError(
            f"The name has {len(shown)} characters, and at most {LONGEST} fit.",
            f"De naam heeft {len(shown)} tekens, en er passen er hoogstens {LONGEST}.",
        )
    return shown

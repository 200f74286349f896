"""What goes wrong with a certificate, as a sentence in both languages."""

from importlib.util import find_spec

from gradacc_lessons.text import Text

NEEDED = ("jwt", "cryptography", "segno")
"""The modules that the extra "certificate" brings."""


class CertificateError(ValueError):
    """One sentence says what is wrong and what to do; `text` has it in both languages."""

    def __init__(self, en: str, nl: str) -> None:
        super().__init__(en)
        self.text = Text(en, nl)


def need_extra() -> None:
    """CertificateError that says what to install, if the packages for certificates are not here."""
    if all(find_spec(name) for name in NEEDED):
        return
    command = 'pip install "PyJWT>=2.8" "cryptography>=42" "segno>=1.6"'
    raise CertificateError(
        f"Certificates need three packages that are not installed here: run {command} and try again.",
        f"Voor certificaten zijn drie packages nodig die hier niet staan: voer {command} uit en probeer het opnieuw.",
    )

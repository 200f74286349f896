"""The commands of `gradacc` for certificates: issuing one's own, whom to trust, taking back, and verifying."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click

from gradacc_lessons.cli_output import LANGUAGE, UserPath, in_words, say
from gradacc_lessons.text import Language

FILE = UserPath(dir_okay=False)
CANNOT_TELL = 2
"""The exit code of `gradacc verify` where it has nothing to say about the certificate; click's own for wrong usage."""


@contextmanager
def _in_words(language: Language | None, exit_code: int = 1) -> Iterator[Language]:
    """The language of the answer; the packages that certificates need are here, or that is the answer."""
    from gradacc_lessons.certificate.problem import need_extra

    with in_words(language, exit_code) as answer_in:
        need_extra()
        yield answer_in


@click.group(invoke_without_command=True)
@click.option("--name", help="Your name, as it is to stand on the certificate.")
@click.option("--full", is_flag=True, help="The full certificate: every lesson of the installed course.")
@click.option(
    "--folder",
    type=UserPath(file_okay=False),
    default=Path("."),
    help="Where its files are written; without it, here.",
)
@click.option("--valid-until", type=click.DateTime(["%Y-%m-%d"]), help="The day on which it expires, at 0:00 UTC.")
@LANGUAGE
@click.pass_context
def certificate(
    context: click.Context,
    name: str | None,
    full: bool,
    folder: Path,
    valid_until: datetime | None,
    language: Language | None,
) -> None:
    """Write a certificate of what you have passed: two pictures, and its signed proof.

    Without --full it is the core certificate: lessons 00 to 05 and 07. What is missing is said lesson by lesson, with
    exit code 1. It is signed with a key of your own, which is made at first use. Nothing leaves this computer.

    Example:  gradacc certificate --name "Ada Lovelace"
    """
    if context.invoked_subcommand:
        return
    with _in_words(language) as answer_in:
        from gradacc_lessons.certificate.certificate import Certificate

        ends = valid_until.replace(tzinfo=UTC) if valid_until else None
        own = Certificate(name or "", full=full, language=answer_in, valid_until=ends)
        if own.missing is not None:
            say(own.missing.to(answer_in))
            sys.exit(1)
        for path in own.save(folder):
            say(str(path))
        say(own.words.to(answer_in))


@certificate.command()
@click.option("--key", "key_file", type=FILE, help="The key of a class, teacher.pem; without it, your own.")
@LANGUAGE
def key(key_file: Path | None, language: Language | None) -> None:
    """Print your public key, to give to whoever is to trust what you sign.

    Example:  gradacc certificate key
    """
    with _in_words(language):
        from gradacc_lessons.certificate.keys import key_in, own_key

        say((key_in(key_file) if key_file else own_key()).did)


@certificate.command()
@click.argument("issuer", metavar="[KEY]", required=False)
@click.option("--name", help="Who it is, in your own words.")
@click.option("--remove", is_flag=True, help="Trust the key no longer.")
@LANGUAGE
def trust(issuer: str | None, name: str | None, remove: bool, language: Language | None) -> None:
    """Remember an issuer's public key as one that you trust; without a key, list those you do.

    KEY is a did:key, or a file with one or with a public key in PEM. Get it from the issuer, not from a certificate.

    Example:  gradacc certificate trust did:key:z6Mk... --name "Class 5V"
    """
    with _in_words(language) as answer_in:
        from gradacc_lessons.certificate import keyring, words
        from gradacc_lessons.certificate.keys import read_did
        from gradacc_lessons.certificate.problem import CertificateError

        if issuer is None:
            if remove or name:
                raise CertificateError(words.WHICH.en, words.WHICH.nl)
            say("\n".join(f"{did}  {who}" for did, who in keyring.trusted().items()) or words.NOBODY.to(answer_in))
            return
        did = read_did(issuer)
        if remove:
            say((words.FORGOTTEN if keyring.forget(did) else words.NOT_KNOWN).to(answer_in))
        else:
            if not name:
                raise CertificateError(words.WHO.en, words.WHO.nl)
            keyring.trust(did, name)
            say(words.remembered(name).to(answer_in))


@certificate.command()
@click.argument("source", metavar="FILE|TOKEN|ID")
@click.option("--list", "file", type=FILE, required=True, help="The list of revocations; made if it is not there.")
@click.option("--key", "key_file", type=FILE, help="The key that it was issued with; without it, your own.")
@LANGUAGE
def revoke(source: str, file: Path, key_file: Path | None, language: Language | None) -> None:
    """Take back a certificate that you issued: add its id to a signed list, for whoever verifies.

    Example:  gradacc certificate revoke certificate.json --list revoked.jwt
    """
    with _in_words(language) as answer_in:
        from gradacc_lessons.certificate import words
        from gradacc_lessons.certificate.revocations import revoke_source

        found = revoke_source(source, file, key_file)
        say(words.revoked(len(found.ids), str(file)).to(answer_in))


@click.command()
@click.argument("source", metavar="FILE|TOKEN")
@click.option("--issuer", "issuers", multiple=True, metavar="KEY", help="Trust this key, and no other, this time.")
@click.option("--revoked", type=FILE, multiple=True, help="A list of revocations by the certificate's issuer.")
@LANGUAGE
def verify(source: str, issuers: tuple[str, ...], revoked: tuple[Path, ...], language: Language | None) -> None:
    """Verify a certificate, offline: a file (.png, .svg, .jwt or .json), a token, or the text of its QR code.

    The exit code is 0 if it is valid and its issuer is one that you trust: a key given with --issuer or remembered
    with `gradacc certificate trust`. It is 3 if nothing was changed since issue but the issuer is unknown, and 1 if
    the certificate is not valid; the answer says why. It is 2 if nothing can be said about the certificate: a key that
    cannot be read, packages that are not installed.

    Example:  gradacc verify certificate.png --issuer did:key:z6Mk...
    """
    with _in_words(language, CANNOT_TELL) as answer_in:
        from gradacc_lessons.certificate.verify import verify as verified

        verdict = verified(source, issuers=issuers, revoked=revoked)
        say(verdict.text.to(answer_in))
    sys.exit(verdict.exit_code)

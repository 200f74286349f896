"""Issuing a certificate: with the learner's own key for self-study, with a teacher's for a class."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache

from gradacc_lessons.certificate import tokens
from gradacc_lessons.certificate.credential import Credential, Kind, claims_of, content_of
from gradacc_lessons.certificate.keys import SigningKey
from gradacc_lessons.certificate.problem import CertificateError
from gradacc_lessons.certificate.reading import read_credential
from gradacc_lessons.course import course_folder
from gradacc_lessons.progress import passes
from gradacc_lessons.quiz.bank import find_bank, load_bank
from gradacc_lessons.text import Language


def issue(
    subject_name: str,
    lessons: Mapping[str, float],
    *,
    key: SigningKey,
    issuer_name: str | None,
    kind: Kind,
    valid_from: datetime | None = None,
    valid_until: datetime | None = None,
    language: Language = "en",
    titles: Mapping[str, str] | None = None,
) -> Credential:
    """A signed certificate that somebody passed `lessons`: the share of the points, 0 to 1, by the lesson's name.

    `issuer_name` is the teacher's or the school's; None where learners issue it themselves. `titles` of lessons that
    are not the course's. The same arguments give the same bytes; without `valid_from` it is valid from now.
    CertificateError for a name that cannot stand on a certificate, and for a lesson that was not passed.
    """
    _check_passed(lessons)
    content = content_of(
        subject_name,
        lessons,
        {lesson: title_of(lesson, language) for lesson in lessons} | dict(titles or {}),
        issuer=key.did,
        issuer_name=issuer_name,
        kind=kind,
        valid_from=valid_from or datetime.now(UTC),
        valid_until=valid_until,
        language=language,
    )
    return read_credential(tokens.sign(claims_of(content), key, tokens.CREDENTIAL))


def _check_passed(lessons: Mapping[str, float]) -> None:
    if not lessons:
        raise CertificateError(
            "A certificate needs at least one lesson.", "Een certificaat heeft minstens één les nodig."
        )
    for lesson, share in lessons.items():
        if not passes(share):
            raise CertificateError(
                f"{lesson} was not passed, so it cannot stand on a certificate.",
                f"{lesson} is niet gehaald, dus het kan niet op een certificaat staan.",
            )


@cache
def title_of(lesson: str, language: Language) -> str:
    """The lesson's title in the installed course; its name if the course has no such lesson."""
    try:
        return load_bank(find_bank(course_folder("quizzes"), lesson)).title.to(language)
    except (ValueError, OSError):
        return lesson

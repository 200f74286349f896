"""Reading a credential out of a token: every part that is used later must be there, be of its kind, and agree."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from gradacc_lessons.certificate import tokens
from gradacc_lessons.certificate.credential import (
    CONTEXT,
    REGISTERED,
    TYPES,
    Credential,
    Json,
    Lesson,
    claims_of,
    content_id,
    moment,
    when,
)
from gradacc_lessons.certificate.names import clean_name
from gradacc_lessons.certificate.problem import CertificateError

MOST_LESSONS = 100


def _tidy(name: str) -> str:
    if clean_name(name) != name:
        raise ValueError("not as a certificate writes it")
    return name


def _time(text: str) -> str:
    if when(moment(text)) != text:
        raise ValueError("not as a certificate writes it")
    return text


Name = Annotated[str, AfterValidator(_tidy)]
Time = Annotated[str, AfterValidator(_time)]


class _Part(BaseModel):
    """A part that we read; what stands beside it is the issuer's own business, and is signed too."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class _Issuer(_Part):
    id: str
    name: Name


class _Identity(_Part):
    hashed: Literal[False]
    identityHash: Name
    identityType: Literal["name"]


class _Description(_Part):
    id: str
    name: Name
    resultType: Literal["Percent"]


class _Result(_Part):
    resultDescription: str
    value: str


class _Achievement(_Part):
    id: str
    name: Name
    inLanguage: Literal["en", "nl"]
    resultDescription: list[_Description]


class _Subject(_Part):
    identifier: list[_Identity]
    achievement: _Achievement
    result: list[_Result]


class _Content(_Part):
    id: str
    name: Name
    issuer: _Issuer
    validFrom: Time
    validUntil: Time | None = None
    credentialSubject: _Subject


def read_credential(token: str) -> Credential:
    """The credential in a token that is signed by the issuer it names; CertificateError says what is wrong with it.

    Times and trust are not looked at here.
    """
    did, claims = tokens.read(token, tokens.CREDENTIAL)
    content = {key: value for key, value in claims.items() if key not in REGISTERED}
    try:
        parts = _Content.model_validate(content)
        registered = claims_of(content)
        lessons = _lessons(parts.credentialSubject)
    except ValidationError as error:
        raise _not_ours(".".join(str(part) for part in error.errors()[0]["loc"])) from None
    except (ValueError, OverflowError):
        raise _not_ours("credentialSubject.result") from None
    for field, expected in (("@context", CONTEXT), ("type", TYPES)):
        if content.get(field) != expected:
            raise _not_ours(field)
    if "proof" in content:
        raise _not_ours("proof")
    if claims != registered or parts.issuer.id != did:
        raise CertificateError(
            "what its token says of issuer, id or times is not what its credential says",
            "wat het token zegt over uitgever, id of tijden is iets anders dan wat de credential zegt",
        )
    if parts.id != content_id(content):
        raise CertificateError("its id is not the digest of its content", "de id is niet de controlesom van de inhoud")
    return _credential(token, content, parts, lessons)


def _credential(token: str, content: Json, parts: _Content, lessons: tuple[Lesson, ...]) -> Credential:
    return Credential(
        token=token,
        content=content,
        name=parts.credentialSubject.identifier[0].identityHash,
        issuer=parts.issuer.id,
        issuer_name=parts.issuer.name,
        lessons=lessons,
        valid_from=moment(parts.validFrom),
        valid_until=None if parts.validUntil is None else moment(parts.validUntil),
    )


def _lessons(subject: _Subject) -> tuple[Lesson, ...]:
    """One for each result; ValueError if results and their descriptions are not one to one."""
    described = subject.achievement.resultDescription
    if len(subject.identifier) != 1 or not 0 < len(described) <= MOST_LESSONS:
        raise ValueError("one name, and lessons")
    if [each.id for each in described] != [each.resultDescription for each in subject.result]:
        raise ValueError("results that are not described")
    lessons = []
    for description, result in zip(described, subject.result, strict=True):
        percent = int(result.value)
        own_id, mark, name = description.id.partition("#")
        if str(percent) != result.value or not 0 <= percent <= 100 or (own_id, mark) != (subject.achievement.id, "#"):
            raise ValueError("a result that is no percentage")
        lessons.append(Lesson(clean_name(name), description.name, percent))
    if len({lesson.name for lesson in lessons}) < len(lessons):
        raise ValueError("a lesson that stands twice")
    return tuple(lessons)


def _not_ours(where: str) -> CertificateError:
    return CertificateError(
        f"its signature fits, but it is no certificate of this course: look at {where}",
        f"de handtekening klopt, maar het is geen certificaat van deze cursus: kijk bij {where}",
    )


def as_document(credential: Credential) -> dict[str, Any]:
    """The credential with its proof inside, to read and to verify."""
    return {**credential.content, "proof": {"type": "JwtProof2020", "jwt": credential.token}}

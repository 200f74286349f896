"""The credential: what a certificate says, as Open Badges 3.0 writes it (1EdTech, Open Badges Specification 3.0).

Its id is the digest of everything else in it, as a hash name of RFC 6920, so that the id on a picture stands for one
content. Each lesson is a result in percent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args
from uuid import NAMESPACE_OID, uuid5

from gradacc_lessons import __version__, canonical
from gradacc_lessons.certificate import words
from gradacc_lessons.certificate.names import clean_name
from gradacc_lessons.certificate.problem import CertificateError
from gradacc_lessons.progress import PASS_MARK
from gradacc_lessons.progress_records import percent
from gradacc_lessons.text import Language

Kind = Literal["core", "full", "lessons"]
"""The core lessons, every lesson of the installed course, or the lessons that are listed."""
CONTEXT = ["https://www.w3.org/ns/credentials/v2", "https://purl.imsglobal.org/spec/ob/v3p0/context-3.0.3.json"]
TYPES = ["VerifiableCredential", "OpenBadgeCredential"]
ID_SCHEME = "nih:sha-256;"
REGISTERED = ("iss", "jti", "nbf", "exp")
"""What a JWT has beside the credential; all of it follows from the credential."""
Json = dict[str, Any]


@dataclass(frozen=True)
class Lesson:
    """One lesson that was passed."""

    name: str
    """As the course names it: 01_accumulate."""
    title: str
    """As people read it."""
    percent: int
    """Of its quiz's points, in the best take."""


@dataclass(frozen=True)
class Credential:
    """A certificate that was signed, read from what is signed and nothing else."""

    token: str = field(repr=False)
    """The signed proof: a VC-JWT."""
    content: Json = field(repr=False)
    """The Open Badges 3.0 credential."""
    name: str
    """Whose it is."""
    issuer: str
    """The issuer's public key as did:key."""
    issuer_name: str
    """What the issuer calls itself; anybody can write any name here."""
    lessons: tuple[Lesson, ...]
    """What was passed."""
    valid_from: datetime
    """When it was issued."""
    valid_until: datetime | None
    """When it expires; None if it does not."""

    @property
    def id(self) -> str:
        """The digest of everything else in the credential."""
        return str(self.content["id"])

    @property
    def title(self) -> str:
        """What it is called."""
        return str(self.content["name"])

    @property
    def kind(self) -> Kind:
        """Which lessons it is for; "lessons" if it is a kind that this version does not know."""
        kinds: tuple[Kind, ...] = get_args(Kind)
        own = {_achievement_id(kind): kind for kind in kinds}
        return own.get(self.content["credentialSubject"]["achievement"]["id"], "lessons")

    @property
    def language(self) -> Language:
        """The language that it is written in."""
        return "nl" if self.content["credentialSubject"]["achievement"]["inLanguage"] == "nl" else "en"

    @property
    def self_issued(self) -> bool:
        """Whether it says of itself that the learner issued it."""
        return self.issuer_name == self.name


def content_id(content: Json) -> str:
    """The id of a credential: the digest of all but its id and its proof."""
    return ID_SCHEME + canonical.digest({key: value for key, value in content.items() if key not in ("id", "proof")})


def content_of(
    subject_name: str,
    lessons: Mapping[str, float],
    titles: Mapping[str, str],
    *,
    issuer: str,
    issuer_name: str | None,
    kind: Kind,
    valid_from: datetime,
    valid_until: datetime | None,
    language: Language,
) -> Json:
    """The credential of somebody who passed `lessons` (share of the points by name; titles by name).

    Without `issuer_name` the learner is the issuer. CertificateError for a name or a time that cannot be.
    """
    name = clean_name(subject_name)
    achievement = _achievement(lessons, titles, kind, issuer_name is None, language)
    content: Json = {
        "@context": CONTEXT,
        "type": TYPES,
        "issuer": {"id": issuer, "type": ["Profile"], "name": clean_name(issuer_name or name)},
        "validFrom": when(valid_from),
        "name": achievement["name"],
        "credentialSubject": _subject(name, achievement, lessons),
    }
    if valid_until is not None:
        if when(valid_until) <= content["validFrom"]:
            raise CertificateError(
                f"A certificate that ends on {when(valid_until)} would be expired when it is issued.",
                f"Een certificaat dat op {when(valid_until)} afloopt, is bij het uitgeven al verlopen.",
            )
        content["validUntil"] = when(valid_until)
    return {**content, "id": content_id(content)}


def claims_of(content: Json) -> Json:
    """The JWT's payload: the credential at the top level, and the registered claims that follow from it."""
    claims = {
        **content,
        "iss": content["issuer"]["id"],
        "jti": content["id"],
        "nbf": int(moment(content["validFrom"]).timestamp()),
    }
    if "validUntil" in content:
        claims["exp"] = int(moment(content["validUntil"]).timestamp())
    return claims


def when(at: datetime) -> str:
    """A time as credentials write it, to the second; a time without a zone is the computer's own."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(text: str) -> datetime:
    """The time that `when` wrote; ValueError for any other way to write it."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def _subject(name: str, achievement: Json, lessons: Mapping[str, float]) -> Json:
    return {
        "type": ["AchievementSubject"],
        "identifier": [{"type": "IdentityObject", "hashed": False, "identityHash": name, "identityType": "name"}],
        "achievement": achievement,
        "result": [
            {"type": ["Result"], "resultDescription": description["id"], "value": str(percent(share))}
            for share, description in zip(lessons.values(), achievement["resultDescription"], strict=True)
        ],
    }


def _achievement(
    lessons: Mapping[str, float], titles: Mapping[str, str], kind: Kind, by_learner: bool, language: Language
) -> Json:
    own_id = _achievement_id(kind)
    return {
        "id": own_id,
        "type": ["Achievement"],
        "name": words.TITLES[kind].to(language),
        "description": words.DESCRIPTIONS[kind].to(language),
        "criteria": {"narrative": words.criteria(by_learner).to(language)},
        "inLanguage": language,
        "version": __version__,
        "resultDescription": [
            {
                "id": f"{own_id}#{lesson}",
                "type": ["ResultDescription"],
                "name": titles.get(lesson, lesson),
                "resultType": "Percent",
                "requiredValue": f"{PASS_MARK * 100:.0f}",
                "valueMin": "0",
                "valueMax": "100",
            }
            for lesson in lessons
        ],
    }


def _achievement_id(kind: str) -> str:
    return f"urn:uuid:{uuid5(NAMESPACE_OID, f'gradacc-lessons/{kind}')}"

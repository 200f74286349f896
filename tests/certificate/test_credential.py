"""What is issued is an Open Badges 3.0 credential, also to a library that is not ours."""

import json
from datetime import UTC, datetime, timedelta
from importlib.resources import files as resources

import pytest
from certificate.made import AT, LESSONS, key, made
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from openbadgeslib.ob3 import OB3VerificationError, OB3Verifier

from gradacc_lessons import canonical
from gradacc_lessons.certificate.credential import content_id
from gradacc_lessons.certificate.problem import CertificateError

CONTEXTS = ("credentials-v2.json", "ob-v3p0-context-3.0.3.json")


def verifiers() -> list[OB3Verifier]:
    pem = key().private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return [OB3Verifier(pem), OB3Verifier.for_issuer_did(key().did)]


@pytest.mark.parametrize("way", [0, 1], ids=["pem", "did:key"])
@pytest.mark.parametrize("language", ["en", "nl"])
@pytest.mark.parametrize("issuer_name", [None, "Klas 5V"])
def test_another_library_verifies_it_and_reads_the_same(way, language, issuer_name):
    until = datetime.now(UTC) + timedelta(days=1)
    ours = made("Zoë", language=language, issuer_name=issuer_name, valid_until=until)
    theirs = verifiers()[way].verify(ours.token)
    assert theirs.issuer.id == ours.issuer and theirs.issuer.name == ours.issuer_name
    assert theirs.achievement.name == ours.title
    assert theirs.issuance_date == AT and theirs.expiration_date == until.replace(microsecond=0)


def test_another_library_refuses_what_was_changed_or_has_expired():
    with pytest.raises(OB3VerificationError):
        verifiers()[0].verify(made(valid_from=AT - timedelta(days=9), valid_until=AT - timedelta(days=8)).token)
    head, body, signature = made().token.split(".")
    with pytest.raises(OB3VerificationError):
        verifiers()[0].verify(f"{head}.{body[:-2]}AA.{signature}")
    with pytest.raises(OB3VerificationError):
        verifiers()[0].verify(made(key=key(2)).token)


def terms(context) -> dict:
    """The terms that a context defines."""
    parts = context if isinstance(context, list) else [context]
    return {name: value for each in parts if isinstance(each, dict) for name, value in each.items()}


def undefined(value, known: dict, at: str = "") -> list[str]:
    """The keys that no context gives a meaning, scoped by type as JSON-LD does."""
    if isinstance(value, list):
        return [each for item in value for each in undefined(item, known, at)]
    if not isinstance(value, dict):
        return []
    types = value.get("type", [])
    for name in types if isinstance(types, list) else [types]:
        definition = known.get(name)
        assert definition is not None, f"type {name} at {at}"
        if isinstance(definition, dict) and "@context" in definition:
            known = {**known, **terms(definition["@context"])}
    found = [f"{at}.{name}" for name in value if name not in known and name != "@context"]
    for name, below in value.items():
        scope = known.get(name)
        inner = terms(scope["@context"]) if isinstance(scope, dict) and "@context" in scope else {}
        found += undefined(below, {**known, **inner}, f"{at}.{name}")
    return found


def test_every_key_and_type_has_a_meaning_in_the_published_contexts():
    folder = resources("openbadgeslib") / "ob3" / "contexts"
    known: dict = {}
    for name in CONTEXTS:
        known |= terms(json.loads((folder / name).read_text(encoding="utf-8"))["@context"])
    assert undefined({"nonsense": 1}, known) == [".nonsense"]
    assert undefined(made(valid_until=AT + timedelta(days=1)).content, known) == []


def test_the_id_is_the_digest_of_the_canonical_json_without_id_and_proof():
    content = made().content
    bare = {name: value for name, value in content.items() if name != "id"}
    assert content["id"] == f"nih:sha-256;{canonical.digest(bare)}" == content_id({**content, "proof": "anything"})


@pytest.mark.parametrize(
    "changes",
    [{"name": "Bob"}, {"lessons": {"00_start_here": 1.0}}, {"key": key(2)}, {"language": "nl"}, {"kind": "full"},
     {"issuer_name": "Class"}, {"valid_until": AT + timedelta(days=1)}, {"valid_from": AT + timedelta(seconds=1)}],
)  # fmt: skip
def test_whatever_differs_gives_another_id(changes):
    assert made(**changes).id != made().id


def test_the_same_again_is_the_same_bytes_and_without_a_time_it_is_now():
    assert made().token == made().token
    assert abs(made(valid_from=None).valid_from - datetime.now(UTC)) < timedelta(seconds=20)


def test_a_time_without_a_zone_is_the_computers_own():
    local = datetime(2026, 7, 1, 12)
    assert made(valid_from=local).valid_from == local.astimezone(UTC)


def test_it_lists_what_was_passed_in_whole_percent_rounded_down():
    assert [(each.name, each.percent) for each in made().lessons] == [
        ("00_start_here", 100),
        ("01_accumulate", 95),
        ("02_scale_the_loss", 80),
    ]
    assert made(lessons={"01_accumulate": 0.7999999999}).lessons[0].percent == 80
    assert made(lessons={"01_accumulate": 0.999}).lessons[0].percent == 99


def test_titles_are_the_courses_in_its_language_or_the_teachers_own():
    assert made().lessons[0].title == "Start here"
    assert made(language="nl").lessons[0].title == "Begin hier"
    own = made(lessons={"20_ours": 0.9, "21_other": 0.9}, titles={"20_ours": "Our <own> lesson"})
    assert [each.title for each in own.lessons] == ["Our <own> lesson", "21_other"]


@pytest.mark.parametrize(
    "lessons", [{}, {"00_start_here": 1.0, "01_accumulate": 0.79}, {"00_start_here": float("nan")}]
)
def test_what_was_not_passed_cannot_be_issued(lessons):
    with pytest.raises(CertificateError, match=r"lesson|not passed"):
        made(lessons=lessons)


def test_it_cannot_be_issued_expired():
    with pytest.raises(CertificateError, match="expired"):
        made(valid_until=AT)


@pytest.mark.parametrize("kind", ["core", "full", "lessons"])
@pytest.mark.parametrize("language", ["en", "nl"])
def test_it_says_what_kind_it_is_and_who_graded(kind, language):
    own, taught = made(kind=kind, language=language), made(kind=kind, language=language, issuer_name="Ms Jansen")
    assert own.kind == taught.kind == kind and own.language == language
    assert own.self_issued and not taught.self_issued
    narratives = [each.content["credentialSubject"]["achievement"]["criteria"]["narrative"] for each in (own, taught)]
    assert narratives[0] != narratives[1] and all("80 %" in each for each in narratives)
    assert LESSONS.keys() == {each.name for each in own.lessons}


def test_no_mail_address_or_key_of_the_learner_is_in_it():
    text = json.dumps(made().content)
    assert "mail" not in text and "PRIVATE" not in text

"""Three answers: an issuer that is trusted, one that is unknown, and not valid; each in words and an exit code."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from time import process_time

import pytest
from certificate.made import AT, forged, header_of, key, made, resigned
from openbadgeslib.ob3 import OB3Verifier

from gradacc_lessons.certificate import keyring, tokens
from gradacc_lessons.certificate.compact import compact
from gradacc_lessons.certificate.credential import claims_of
from gradacc_lessons.certificate.files import FORMATS
from gradacc_lessons.certificate.picture_seal import END, PNG, read_sealed, seal
from gradacc_lessons.certificate.problem import CertificateError
from gradacc_lessons.certificate.revocations import read_revocations, revoke
from gradacc_lessons.certificate.verify import verify

LATER = AT + timedelta(days=1)


def invalid(verdict, words: str) -> None:
    assert (verdict.outcome, verdict.exit_code, verdict.credential) == ("invalid", 1, None)
    assert words in verdict.text.en and verdict.text.nl.startswith("✘ Niet geldig: ")


@pytest.mark.parametrize("form", [*FORMATS, "code", "text"])
def test_every_kind_of_file_and_text_gets_the_same_three_answers(ada, files, tmp_path, form):
    source = {"code": compact(ada), "text": f"  {ada.token}\n"}.get(form)
    if source is None:
        (tmp_path / "certificate").write_bytes(files[form])  # whatever its name ends with
        source = str(tmp_path / "certificate")
    unknown = verify(source)
    assert (unknown.outcome, unknown.exit_code, unknown.credential) == ("unknown", 3, ada)
    assert "Unchanged since issue, issuer unknown" in unknown.text.en and "uitgever onbekend" in unknown.text.nl
    assert verify(source, issuers=[key().did]).exit_code == 0
    assert verify(source, issuers=[key(2).did]).exit_code == 3
    keyring.trust(key().did, "My own key")
    kept = verify(source)
    assert kept.exit_code == 0 and "My own key" in kept.text.en
    assert verify(source, issuers=[key(2).did]).exit_code == 3  # asked for that key, and no other
    invalid(verify(source, at=AT - timedelta(seconds=1)), "not yet")


def test_the_answer_says_what_the_certificate_says_and_what_that_proves(ada):
    said = verify(ada.token).text
    for part in ("Ada Lovelace", "01_accumulate", "95 %", "2026-11-30", ada.id, ada.issuer):
        assert part in said.en and part in said.nl
    assert "nothing was changed" in said.en and "not who the learner is" in said.en
    taught = verify(made(issuer_name="Ms Jansen").token).text
    assert "whoever holds the issuer's key" in taught.en and "calls itself Ms Jansen" in taught.en


def test_a_certificate_that_expires_is_valid_until_then_and_not_after():
    token = made(valid_until=LATER).token
    assert verify(token, at=LATER - timedelta(seconds=1)).exit_code == 3
    assert "2026-12-01" in verify(token, at=LATER - timedelta(seconds=1)).text.en
    invalid(verify(token, at=LATER), "it expired on 2026-12-01")


def test_one_that_was_signed_anew_by_somebody_else_is_not_the_teachers():
    keyring.trust(key().did, "Ms Jansen")
    taught = made("Eve", issuer_name="Ms Jansen")
    forger = made("Eve", issuer_name="Ms Jansen", key=key(2))
    assert verify(taught.token).exit_code == 0
    assert verify(forger.token).exit_code == 3 and "Anybody can make a key" in verify(forger.token).text.en
    # The teacher's did in the credential, the forger's signature.
    claims = claims_of(taught.content)
    invalid(verify(forged(header_of(key(2)), claims, key(2))), "issuer, id or times")
    invalid(verify(forged(header_of(key(1)), claims, key(2))), "changed since it was issued")
    head, body, _ = taught.token.split(".")
    invalid(verify(f"{head}.{body}.{forger.token.split('.')[2]}"), "changed since it was issued")
    # Better marks, and the id that fits them.
    content = json.loads(json.dumps(taught.content))
    content["credentialSubject"]["result"][1]["value"] = "100"
    invalid(verify(f"{head}.{resigned(content, key(2)).split('.')[1]}.{taught.token.split('.')[2]}"), "changed")


def test_a_document_that_reads_differently_from_what_was_signed_is_invalid(files, tmp_path):
    document = json.loads(files["json"])
    file = tmp_path / "certificate.json"

    def answer(changed):
        file.write_text(json.dumps(changed))
        return verify(file)

    assert answer(dict(reversed(document.items()))).exit_code == 3  # the order of keys says nothing
    invalid(answer({**document, "name": "Full certificate"}), "not what was signed")
    invalid(answer({**document, "note": "with distinction"}), "not what was signed")
    invalid(answer({**document, "proof": {**document["proof"], "created": "2027-01-01"}}), "not what was signed")
    invalid(answer({**document, "proof": {**document["proof"], "jwt": made("Bob").token}}), "not what was signed")
    invalid(answer({name: value for name, value in document.items() if name != "proof"}), "not signed")
    for proof in (None, [], "x", {}, {"jwt": 1}, {"jwt": ""}):
        assert answer({**document, "proof": proof}).exit_code == 1
    file.write_bytes(files["json"].replace(b'"name"', b'"name": "x", "name"', 1))
    invalid(verify(file), "stands twice")


def test_other_libraries_find_the_token_in_the_pictures(ada, files):
    assert OB3Verifier.extract_token_from_png(files["png"]) == ada.token
    assert OB3Verifier.extract_token_from_svg(files["svg"]) == ada.token


def test_a_picture_that_shows_something_else_is_invalid(ada, files):
    png, svg = files["png"], files["svg"]
    middle = len(png) // 2
    other = seal(files["svg"].split(b"<metadata")[0].replace(b"Ada", b"Eve"), made("Eve", key=key(2)), key(2))
    for changed in (
        png[:middle] + bytes([png[middle] ^ 1]) + png[middle + 1 :],
        png + b"\0",
        png.removesuffix(END) + END + END,
        svg.replace(b"Lovelace", b"Loveless"),
        svg.replace(b"</desc>", b"</desc><!-- x -->"),
        svg + b"\n",
        svg.replace(ada.token.encode(), made("Bob").token.encode()),
        other.replace(made("Eve", key=key(2)).token.encode(), ada.token.encode()),
    ):
        with pytest.raises(CertificateError):
            read_sealed(changed)


def test_a_picture_without_its_seal_or_its_certificate_says_so(files):
    start = files["png"].index(b"iTXtgradacc-seal") - 4
    with pytest.raises(CertificateError, match="no seal"):
        read_sealed(files["png"][:start] + END)
    with pytest.raises(CertificateError, match="no seal"):
        read_sealed(files["svg"].split(b'<metadata id="gradacc-seal">')[0] + b"</svg>\n")
    with pytest.raises(CertificateError, match="no certificate in the picture"):
        read_sealed(b"<svg xmlns='http://www.w3.org/2000/svg'></svg>")
    with pytest.raises(CertificateError, match="no certificate in the picture"):
        read_sealed(files["png"][:33] + END)


def test_a_seal_is_no_certificate_and_a_certificate_no_seal(ada, files):
    sealed = files["svg"].rpartition(b'gradacc-seal">')[2].partition(b"<")[0].decode()
    invalid(verify(sealed), "another kind")
    with pytest.raises(CertificateError, match="another kind"):
        tokens.read(ada.token, tokens.SEAL)


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"\0", b"{", b"{}", b"[]", b"null", b"<svg ", b"<?xml?><svg ></svg>", b"eyJ.eyJ.eyJ", b"..", b"MZ\x90"),
        *(b"\x89PNG\r\n\x1a\n", b"\x89PNG\r\n\x1a\n\xff\xff\xff\xffiTXt", b"GRADACC1:", b"\xff\xfe{"),
        *(b"{" * 100_000, b"[" * 1_000_000),
    ],
    ids=lambda raw: repr(raw[:12]),
)
def test_what_is_no_certificate_at_all_is_a_sentence(tmp_path, raw):
    file = tmp_path / "file"
    file.write_bytes(raw)
    verdict = verify(file)
    assert verdict.exit_code == 1 and "\n" not in verdict.text.en


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(PNG + b"\0\0\0\0aaaa\0\0\0\0" * 1_600_000, id="chunks"),
        pytest.param(b"GRADACC1:" + b"A" * 19_000_000, id="code"),
    ],
)
def test_a_file_that_would_take_seconds_is_refused_at_once(tmp_path, raw):
    file, begun = tmp_path / "file", process_time()
    file.write_bytes(raw)
    invalid(verify(file), "")
    assert process_time() - begun < 1


def test_files_that_cannot_be_read_are_a_sentence(tmp_path):
    invalid(verify(tmp_path / "nowhere.png"), "cannot be read (No such file")
    invalid(verify(tmp_path), "cannot be read")
    invalid(verify("a\0b"), "cannot be read")
    invalid(verify("x" * 5000), "cannot be read")
    for nothing in ("", " \n"):
        invalid(verify(nothing), "nothing to verify")
    (tmp_path / "large").write_bytes(b"x" * 20_000_001)
    invalid(verify(tmp_path / "large"), "larger than")


def test_a_revoked_certificate_is_invalid_and_another_one_is_not(ada, tmp_path):
    revoked = tmp_path / "revoked.jwt"
    revoke(made("Bob").id, revoked, key(), at=AT)
    fine = verify(ada.token, revoked=[revoked])
    assert fine.exit_code == 3 and "Not on the issuer's revocation list of 2026-11-30T17:04:05Z" in fine.text.en
    revoke(ada.id, revoked, key(), at=LATER)
    invalid(verify(ada.token, revoked=[revoked], issuers=[key().did]), "revoked")
    assert read_revocations(revoked).ids == tuple(sorted([ada.id, made("Bob").id]))
    assert read_revocations(revoked).at == LATER


def test_two_that_revoke_at_once_lose_nothing(tmp_path):
    revoked, ids = tmp_path / "revoked.jwt", [f"nih:sha-256;{number:064x}" for number in range(24)]
    with ThreadPoolExecutor(2) as pool:  # each has a connection of its own to the lock, as two processes have
        list(pool.map(lambda each: revoke(each, revoked, key()), ids))
    assert read_revocations(revoked).ids == tuple(ids)
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["revoked.jwt"]


def test_a_list_by_another_issuer_revokes_nothing_and_is_not_enough(ada, tmp_path):
    theirs, own = tmp_path / "theirs.jwt", tmp_path / "own.jwt"
    revoke(ada.id, theirs, key(2))
    invalid(verify(ada.token, revoked=[theirs]), "not by its issuer")
    revoke(made("Bob").id, own, key())
    assert verify(ada.token, revoked=[theirs, own]).exit_code == 3
    with pytest.raises(CertificateError, match="another key"):
        revoke(ada.id, theirs, key())


@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "certificate", "claims", "ids", "time"])
def test_a_list_that_cannot_be_relied_on_makes_the_answer_invalid(ada, tmp_path, damage):
    file = tmp_path / "revoked.jwt"
    revoke(made("Bob").id, file, key())
    text = file.read_text()
    wrong = {
        "claims": {"revoked": []},
        "ids": {"at": "2026-11-30T17:04:05Z", "revoked": [1]},
        "time": {"at": "yesterday", "revoked": []},
    }
    if damage == "gone":
        file.unlink()
    elif damage in wrong:
        file.write_text(tokens.sign(wrong[damage], key(), tokens.REVOCATIONS))
    else:
        file.write_text({"empty": "", "cut": text[:-9], "certificate": ada.token}[damage])
    invalid(verify(ada.token, revoked=[file]), "cannot be relied on")
    if damage != "gone":
        with pytest.raises(CertificateError, match="cannot be relied on"):
            revoke(ada.id, file, key())


def test_only_an_id_can_be_revoked(tmp_path):
    for wrong in ("", "nih:sha-256;", "ada", made().id.upper(), made().id + "0"):
        with pytest.raises(CertificateError, match="no certificate's id"):
            revoke(wrong, tmp_path / "revoked.jwt", key())
    assert not (tmp_path / "revoked.jwt").exists()


def test_a_full_list_says_so_and_keeps_what_it_has(tmp_path):
    def listing(count):
        ids = [f"nih:sha-256;{number:064x}" for number in range(count)]
        return tokens.sign({"at": "2026-11-30T17:04:05Z", "revoked": ids}, key(), tokens.REVOCATIONS)

    file, count = tmp_path / "revoked.jwt", 1890
    file.write_text(listing(count))
    assert len(revoke(made().id, file, key()).ids) == count + 1
    while len(listing(count + 1)) <= tokens.LONGEST:
        count += 1
    file.write_text(listing(count))
    with pytest.raises(CertificateError, match=f"full with {count}"):
        revoke(made().id, file, key())
    assert file.read_text() == listing(count)


@pytest.mark.parametrize("issuer", ["nobody.pem", "did:web:example.org", "did:key:z6Mk", ""])
def test_a_key_that_is_none_is_said_before_anything_is_verified(ada, issuer):
    with pytest.raises(CertificateError, match="key"):
        verify(ada.token, issuers=[issuer])


def test_verifying_opens_no_connection(ada, files, tmp_path, monkeypatch):
    import socket

    def refuse(*_, **__):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    (tmp_path / "c.png").write_bytes(files["png"])
    assert verify(tmp_path / "c.png").exit_code == 3
    assert made("Zoë").name == "Zoë"

"""A learner's own certificate: what is missing, the files, the notebook, and the commands."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from certificate.made import key, made
from click.testing import CliRunner
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from gradacc_lessons import Certificate
from gradacc_lessons.certificate import certificate as module
from gradacc_lessons.certificate import earned, files, keyring, problem
from gradacc_lessons.certificate.keys import KEY_FILE, own_key
from gradacc_lessons.certificate.problem import CertificateError
from gradacc_lessons.certificate.reading import read_credential
from gradacc_lessons.cli import main
from gradacc_lessons.course import course_folder
from gradacc_lessons.device import Place
from gradacc_lessons.progress import Progress, learner_progress

INSTALLED = sorted(bank.stem for bank in course_folder("quizzes").glob("[0-9][0-9]_*.yaml"))
CORE = [lesson for lesson in INSTALLED if lesson[:2] in earned.CORE]


def passed(progress: Progress, lesson: str, share: float = 1.0) -> None:
    progress.begin_take(lesson, 1, {"a": 4.0, "b": 1.0})
    progress.add_answer(lesson, "a", 1, "x", share, 4.0)
    progress.add_answer(lesson, "b", 1, "x", share, 1.0)


@pytest.fixture
def core(home) -> Progress:
    progress = learner_progress()
    for lesson in CORE:
        passed(progress, lesson, 0.9)
    return progress


def run(*arguments: str):
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def test_the_core_is_lessons_00_to_05_and_07(home):
    assert [each.lesson[:2] for each in Certificate("Ada").lessons] == ["00", "01", "02", "03", "04", "05", "07"]
    assert [each.lesson for each in Certificate("Ada", full=True).lessons] == INSTALLED


def test_what_is_missing_is_said_lesson_by_lesson(home):
    progress = learner_progress()
    for lesson in CORE[2:]:
        passed(progress, lesson)
    passed(progress, CORE[1], 0.5)
    missing = Certificate("Ada").missing
    assert re.search(
        rf"2 of 7 .*\n  {CORE[0]} +not begun\n  {CORE[1]} +50%, below the 80% that passes; begin another take$",
        missing.en,
    )
    assert "niet begonnen" in missing.nl and "nieuwe poging" in missing.nl
    with pytest.raises(CertificateError, match="not begun"):
        Certificate("Ada").save()


def test_open_questions_and_a_lesson_that_is_not_installed_are_said(home, tmp_path):
    progress = learner_progress()
    progress.begin_take("00_start_here", 1, {"a": 4.0, "b": 1.0})
    (tmp_path / "00_start_here.yaml").touch()
    first, second = earned.standings(progress, full=False, bank_folder=tmp_path)[:2]
    assert first.words.en == "0 of 5 points so far, 2 of 2 questions still open" and not first.passed
    assert (second.lesson, second.words.en) == ("01", "not in this copy of the course")
    assert [each.lesson for each in earned.standings(progress, full=True, bank_folder=tmp_path)] == ["00_start_here"]


def test_the_best_take_counts_and_its_share_is_what_the_certificate_says(core):
    core.begin_take(CORE[0], 2, {"a": 1.0})
    core.add_answer(CORE[0], "a", 2, "x", 0.3, 1.0)
    own = Certificate("Ada")
    assert own.earned and own.missing is None
    assert [(each.name, each.percent) for each in own.credential.lessons] == [(lesson, 90) for lesson in CORE]
    assert own.credential.self_issued and own.credential.issuer == own_key().did and own.credential.kind == "core"
    assert not Certificate("Ada", full=True).earned


def test_the_command_writes_files_that_verify(core, tmp_path):
    for lesson in INSTALLED:
        passed(core, lesson)
    written = run("certificate", "--name", "Zoë <b>", "--full", "--folder", str(tmp_path / "new"), "--language", "nl")
    assert written.exit_code == 0 and "Zelfstudie" in written.output
    paths = sorted((tmp_path / "new").iterdir())
    assert [path.suffix for path in paths] == [".json", ".jwt", ".png", ".svg"]
    assert all(str(path) in written.output for path in paths)
    public = run("certificate", "key").output.strip()
    for path in paths:
        assert run("verify", str(path)).exit_code == 3
        fine = run("verify", str(path), "--issuer", public)
        assert fine.exit_code == 0 and "Zoë <b>" in fine.output
    credential = read_credential(paths[1].read_text().strip())
    assert (
        credential.kind == "full"
        and credential.language == "nl"
        and [each.name for each in credential.lessons] == INSTALLED
    )


def test_the_command_says_what_is_missing_and_writes_nothing(home, tmp_path):
    refused = run("certificate", "--name", "Ada", "--folder", str(tmp_path / "new"))
    assert refused.exit_code == 1 and "not begun" in refused.output and "Traceback" not in refused.output
    assert not (tmp_path / "new").exists() and not (home / KEY_FILE).exists()


@pytest.mark.parametrize(
    ("name", "words"), [(None, "needs the name"), ("a\x1bb", "U+001B"), ("W" * 201, "201 characters")]
)
def test_a_name_that_cannot_be_is_a_sentence(core, tmp_path, name, words):
    refused = run("certificate", "--folder", str(tmp_path / "new"), *(["--name", name] if name else []))
    assert refused.exit_code == 1 and words in refused.output and not (tmp_path / "new").exists()


def test_a_day_of_expiry(core, tmp_path):
    refused = run("certificate", "--name", "Ada", "--valid-until", "2020-01-01", "--folder", str(tmp_path))
    assert refused.exit_code == 1 and "expired" in refused.output
    written = run("certificate", "--name", "Ada", "--valid-until", "2999-01-01", "--folder", str(tmp_path))
    assert written.exit_code == 0
    assert "valid until 2999-01-01" in run("verify", str(next(tmp_path.glob("*.json")))).output


def test_trusting_listing_and_forgetting_a_key(home, tmp_path):
    token = made(issuer_name="Ms Jansen").token
    assert "not named" in run("certificate", "trust").output
    assert run("verify", token).exit_code == 3
    assert "--name" in run("certificate", "trust", key().did).output
    for without in (["--remove"], ["--name", "Ms Jansen"]):
        refused = run("certificate", "trust", *without)
        assert refused.exit_code == 1 and "Say which key" in refused.output
    assert run("certificate", "trust", key().did, "--name", "Ms Jansen").exit_code == 0
    assert run("certificate", "trust").output == f"{key().did}  Ms Jansen\n"
    trusted = run("verify", token, "--language", "nl")
    assert trusted.exit_code == 0 and "die je vertrouwt: Ms Jansen" in trusted.output
    assert "no longer" in run("certificate", "trust", key().did, "--remove").output
    assert "was not trusted" in run("certificate", "trust", key().did, "--remove").output
    assert run("verify", token).exit_code == 3


def test_revoking_with_ones_own_key_and_with_a_key_file(core, tmp_path):
    listing, teacher = tmp_path / "revoked.jwt", tmp_path / "teacher.pem"
    own = Certificate("Ada").credential
    assert run("certificate", "revoke", own.token, "--list", str(listing)).exit_code == 0
    revoked = run("verify", own.token, "--revoked", str(listing))
    assert revoked.exit_code == 1 and "revoked" in revoked.output
    teacher.write_bytes(key().private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    teacher.chmod(0o600)
    command = ("certificate", "revoke", made().id, "--list", str(tmp_path / "other.jwt"))
    assert run(*command, "--key", str(teacher)).exit_code == 0
    assert run("verify", made().token, "--revoked", str(tmp_path / "other.jwt")).exit_code == 1
    refused = run("certificate", "revoke", made().token, "--list", str(listing))
    assert refused.exit_code == 1 and "Only its issuer" in refused.output
    missing = run(*command, "--key", str(tmp_path / "nowhere.pem"))
    assert missing.exit_code == 1 and not (tmp_path / "nowhere.pem").exists()


def test_invalid_ends_with_1_and_a_mistake_in_the_question_is_a_sentence(home):
    for source in ("nowhere.png", "eyJ.a.b", "GRADACC1:AAAA", ""):
        answer = run("verify", source)
        assert answer.exit_code == 1 and answer.output.startswith("✘ Not valid: "), source
    wrong = run("verify", made().token, "--issuer", "me")
    assert wrong.exit_code == 2 and "neither a did:key nor a file" in wrong.output


def test_what_keeps_it_from_looking_at_the_certificate_ends_with_2(home, tmp_path):
    fine = made().token
    assert run("verify", fine, "--issuer", str(tmp_path)).exit_code == 2
    home.mkdir(exist_ok=True)
    (home / keyring.FILE_NAME).write_bytes(b"{")
    damaged = run("verify", fine)
    assert damaged.exit_code == 2 and "is damaged, so nobody is trusted" in damaged.output
    (home / keyring.FILE_NAME).unlink()
    (home / keyring.FILE_NAME).mkdir()
    unreadable = run("verify", fine)
    assert unreadable.exit_code == 2 and keyring.FILE_NAME in unreadable.output
    assert "is 2 if nothing can be said" in " ".join(run("verify", "--help").output.split())


def test_what_a_certificate_says_does_not_steer_the_terminal(home):
    assert "\\u202e" not in run("verify", made("Ada\u200d").token).output
    assert "\x1b" not in run("verify", "\x1b[2J.png").output


def test_the_files_are_the_same_again_and_have_the_ids_name(ada, tmp_path, files):
    forms = ("jwt", "json", "svg")
    first = module_save(ada, tmp_path / "one", forms)
    assert [path.name for path in first] == [f"gradacc-core-{ada.id[12:20]}.{form}" for form in forms]
    assert [path.read_bytes() for path in first] == [files[form] for form in forms]
    named = module_save(ada, tmp_path / "two", ("jwt",), name="r2d2")
    assert [path.name for path in sorted((tmp_path / "two").iterdir())] == ["r2d2.jwt"] == [path.name for path in named]
    document = json.loads(first[1].read_text(encoding="utf-8"))
    assert document["proof"] == {"type": "JwtProof2020", "jwt": ada.token}


def module_save(credential, folder: Path, forms, **name):
    return files.save(credential, folder, key=key(), forms=forms, **name)


def test_a_folder_that_cannot_be_written_is_a_sentence_and_leaves_nothing(core, tmp_path):
    (tmp_path / "file").touch()
    refused = run("certificate", "--name", "Ada", "--folder", str(tmp_path / "file" / "below"))
    assert refused.exit_code != 0 and "Traceback" not in refused.output
    assert [path.name for path in tmp_path.iterdir() if path.name != "home"] == ["file"]


@pytest.fixture
def shown(monkeypatch):
    """What is displayed in a notebook."""
    import IPython.display

    pages: list[str] = []
    monkeypatch.setattr(module, "place", lambda: Place.JUPYTER)
    monkeypatch.setattr(IPython.display, "display", lambda page: pages.append(page.data))
    return pages


def test_in_a_notebook_the_picture_is_shown_with_what_it_proves(core, shown):
    Certificate('Ada "<script>"').show()
    (page,) = shown
    assert page.startswith("<img alt=") and "data:image/svg+xml;base64," in page and "Self-study" in page
    assert "<script" not in page


def test_in_a_notebook_what_is_missing_is_shown(home, shown):
    Certificate("Ada", language="nl").show()
    assert "<img" not in shown[0] and "niet begonnen" in shown[0]


def test_in_a_terminal_it_says_what_it_proves(core, capsys):
    Certificate("Ada").show()
    assert "Self-study" in capsys.readouterr().out


def test_without_the_extra_one_sentence_says_what_to_install(core, shown, monkeypatch):
    monkeypatch.setattr(problem, "NEEDED", ("no_such_package",))
    Certificate("Ada").show()
    assert "pip install" in shown[0] and "<img" not in shown[0]
    for command in (("certificate", "--name", "Ada"), ("verify", "x"), ("certificate", "key")):
        answer = run(*command)
        assert answer.exit_code == (2 if command[0] == "verify" else 1) and "pip install" in answer.output


def test_the_sentence_asks_for_what_pyproject_asks_for():
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = " ".join(f'"{each}"' for each in project["optional-dependencies"]["certificate"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(problem, "NEEDED", ("no_such_package",))
        with pytest.raises(CertificateError, match=re.escape(f"pip install {wanted} ")):
            problem.need_extra()


def test_the_class_can_be_imported_and_missing_lessons_listed_without_the_extras_packages(home):
    source = (
        "import sys\n"
        "for name in ('jwt', 'cryptography', 'segno'): sys.modules[name] = None\n"
        "from gradacc_lessons import Certificate\n"
        "print(Certificate('Ada').missing.en)"
    )
    printed = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True).stdout
    assert "not begun" in printed

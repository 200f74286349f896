"""What README.md and CONTRIBUTING.md say exists, and what they show is what comes out."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import click
import pytest
import torch
from torch import nn

from gradacc_lessons.authoring.publish import README_BEGIN, README_END, publish
from gradacc_lessons.certificate.earned import CORE
from gradacc_lessons.certificate.verify import EXIT_CODES, verify
from gradacc_lessons.cli import main
from gradacc_lessons.cli_certificate import CANNOT_TELL
from gradacc_lessons.cli_quiz import Lessons
from gradacc_lessons.progress import Progress

ROOT = Path(__file__).parents[1]
README, CONTRIBUTING = ROOT / "README.md", ROOT / "CONTRIBUTING.md"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PAGES = [README, CONTRIBUTING, *sorted((ROOT / "docs").glob("*.md")), *NOTEBOOKS]
NAMES = [page.name for page in PAGES]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    """The Markdown of a page or of a notebook's Markdown cells."""
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":
        return text
    return "\n\n".join("".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "markdown")


def code_in(page: Path) -> list[str]:
    """Every line of a code block without its prompt, and every `inline` piece."""
    text = prose(page)
    lines = [line.removeprefix("$ ").strip() for _, block in FENCE.findall(text) for line in block.splitlines()]
    return [*lines, *re.findall(r"`([^`\n]+)`", FENCE.sub("", text))]


def links(page: Path) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", prose(page)))


def blocks(language: str) -> list[str]:
    return [block for name, block in FENCE.findall(README.read_text(encoding="utf-8")) if name == language]


def one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_make_target_that_is_named_exists(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    for code in code_in(page):
        if code.startswith("make "):
            goals = [word for word in code.split()[1:] if "=" not in word]
            assert goals and set(goals) <= targets, code


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_gradacc_command_and_option_that_is_named_exists(page: Path) -> None:
    for code in code_in(page):
        words = shlex.split(code.replace("\\", "/")) if re.match(r"(\S*[/\\])?gradacc( |$)", code) else []
        command: click.Command = main
        while isinstance(command, click.Group) and len(words) > 1 and not words[1].startswith("-"):
            words = words[1:]
            lesson = isinstance(command, Lessons) and words[0].isdecimal()
            assert lesson or words[0] in command.commands, code
            command = command.commands["take" if lesson else words[0]]
        options = {"--help"} | {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, code


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_relative_link_leads_to_a_file_or_heading(page: Path) -> None:
    for link in links(page):
        if "://" in link:
            continue
        target, _, heading = unquote(link).partition("#")
        file = (page.parent / target).resolve() if target else page
        assert file.exists() and file.is_relative_to(ROOT), link
        if heading:
            slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles(file)}
            assert heading in slugs, link


def titles(file: Path) -> list[str]:
    return re.findall(r"^#+ (.+)$", FENCE.sub("", prose(file)), re.MULTILINE)


@pytest.mark.parametrize("page", [README, CONTRIBUTING], ids=["README.md", "CONTRIBUTING.md"])
def test_every_file_and_folder_that_is_named_exists(page: Path) -> None:
    theirs = {
        ".venv/bin",
        "my_loop.py",
        "my_model.py",
        "my_net.py",
        "my-progress.txt",
        "NN_name.ipynb",
        "TOPIC.py",
        "NN_name.yaml",
    }
    for code in code_in(page):
        for word in code.split():
            path = word.strip("`,;")
            if re.fullmatch(r"[\w./-]+(/|\.(md|py|yml|txt|toml|ipynb|yaml))", path):
                mine = any(path.endswith(name) or path.startswith(name) for name in theirs)
                assert mine or (ROOT / path).exists() or (ROOT / "gradacc_lessons/lessons" / path).exists(), path


def test_the_map_has_every_lesson_under_its_own_title_and_no_other() -> None:
    rows = re.findall(r"^\| (\d\d) \| \[(.+?)\]\((.+?)\)", README.read_text(encoding="utf-8"), re.MULTILINE)
    expected = [(file.name[:2], titles(file)[0], f"notebooks/{file.name}") for file in NOTEBOOKS]
    assert rows == expected


def test_the_diagnosis_in_the_readme_is_what_really_comes_out(tmp_path: Path) -> None:
    loop = blocks("python")[0]
    (tmp_path / "my_loop.py").write_text(loop, encoding="utf-8")
    sessions = [session for session in blocks("console") if session.startswith("$ gradacc diagnose")]
    assert len(sessions) == 2
    codes = []
    for session in sessions:
        prompt, _, shown = session.partition("\n")
        command = shlex.split(prompt.removeprefix("$ gradacc "))
        run: Any = subprocess.run(
            [sys.executable, "-m", "gradacc_lessons", *command], cwd=tmp_path, capture_output=True, text=True
        )
        assert one_line(run.stdout) == one_line(shown)
        codes.append(run.returncode)
    assert codes == [1, 0]


def test_the_verdict_in_the_readme_is_what_really_comes_out(tmp_path: Path) -> None:
    (tmp_path / "my_net.py").write_text(blocks("python")[1], encoding="utf-8")
    (session,) = (session for session in blocks("console") if session.startswith("$ gradacc examine"))
    prompt, _, shown = session.partition("\n")
    command = shlex.split(prompt.removeprefix("$ gradacc "))
    run: Any = subprocess.run(
        [sys.executable, "-m", "gradacc_lessons", *command], cwd=tmp_path, capture_output=True, text=True
    )
    message, _, table = run.stdout.partition("\n\n")
    assert one_line(message) == one_line(shown)
    assert len(table.split("\n")) > 6 and run.returncode == 1


def test_the_tape_in_the_readme_is_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    model, images = nn.Linear(4, 3), torch.ones(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train() -> None:
        for micro_batch in range(10):
            (model(images).square().mean() / 4).backward()
            if (micro_batch + 1) % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()

    exec(blocks("python")[2], {"model": model, "train": train})
    assert capsys.readouterr().out.startswith("10 micro-batches, 2 updates.")


def test_the_exhibit_in_the_readme_is_told_like_that() -> None:
    (session,) = (session for session in blocks("console") if session.startswith("$ gradacc museum"))
    prompt, _, shown = session.partition("\n")
    command = shlex.split(prompt.removeprefix("$ gradacc "))
    run: Any = subprocess.run([sys.executable, "-m", "gradacc_lessons", *command], capture_output=True, text=True)
    told, _, seconds = run.stdout.rpartition(" Both runs took ")
    assert one_line(told) == one_line(shown)
    assert seconds.endswith(" s of computing.\n") and run.returncode == 0


def test_progress_moves_to_another_machine_by_the_lines_of_the_readme(tmp_path: Path) -> None:
    export, import_ = (code for code in code_in(README) if re.match(r"gradacc progress (ex|im)port \S+$", code))
    homes = {export: tmp_path / "old", import_: tmp_path / "new"}
    old = Progress(homes[export] / "progress.sqlite")
    old.begin_take("01_accumulate", 1, {"a": 1.0})
    old.add_answer("01_accumulate", "a", 1, "x", 1.0, 1.0)
    for code, home in homes.items():
        command = [sys.executable, "-m", "gradacc_lessons", *shlex.split(code)[1:]]
        environment = os.environ | {"GRADACC_HOME": str(home)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Taken over. New answers: 1;") and "100%, passed, take 1" in done.stdout
    assert Progress(homes[import_] / "progress.sqlite").results() == old.results()
    assert old.export_text() == (tmp_path / "my-progress.txt").read_text(encoding="ascii")


def test_the_plan_in_the_readme_is_made(tmp_path: Path) -> None:
    parts = blocks("python")[-1]
    (tmp_path / "my_model.py").write_text(parts, encoding="utf-8")
    (command,) = (code for code in code_in(README) if code.startswith("gradacc plan my_model.py"))
    arguments = [*shlex.split(command)[1:], "--no-verify", "--json"]
    run = subprocess.run([sys.executable, "-m", "gradacc_lessons", *arguments], cwd=tmp_path, capture_output=True)
    plan = json.loads(run.stdout)
    said = re.search(r"make up exactly 2,000 examples: two of (\d+) and one of (\d+)\.", prose(README))
    assert said is not None
    larger, smaller = map(int, said.groups())
    assert plan["micro_batches"] == [{"count": 2, "size": larger}, {"count": 1, "size": smaller}]
    assert 2 * larger + smaller == 2000
    assert plan["predicted"]["peak_bytes"] <= plan["budget_bytes"] == 110 * 2**20


def test_publishing_writes_the_buttons_into_the_readme(tmp_path: Path) -> None:
    for file in (README, ROOT / "pyproject.toml"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    publish("OWNER/NAME", root=tmp_path)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    between = text.partition(README_BEGIN)[2].partition(README_END)[0]
    assert between.count("OWNER/NAME") >= 2 and "colab" in between and "mybinder" in between
    assert text.count("\n# ") + text.startswith("# ") == 1


def test_the_pictures_are_there_with_their_text() -> None:
    pictures = re.findall(r"!\[(.+)\]\((docs/.+?)\)", README.read_text(encoding="utf-8"))
    assert [file for _, file in pictures] == ["docs/picture.png", "docs/certificate.svg"]
    assert all(len(alt) > 100 for alt, _ in pictures)
    assert (ROOT / pictures[0][1]).read_bytes().startswith(b"\x89PNG")


def test_the_certificate_in_the_readme_is_one_and_the_codes_are_those_that_it_names() -> None:
    verdict = verify(ROOT / "docs" / "certificate.svg")
    assert verdict.outcome == "unknown" and verdict.credential is not None
    assert [lesson.name[:2] for lesson in verdict.credential.lessons] == list(CORE)
    table = re.findall(r"^\| (\d) \| (.+?)[,:]", README.read_text(encoding="utf-8"), re.MULTILINE)
    said = {"trusted": "valid", "unknown": "unchanged since issue", "invalid": "not valid"}
    codes = {said[outcome]: code for outcome, code in EXIT_CODES.items()}
    assert {answer: int(code) for code, answer in table} == {**codes, "nothing can be said about it": CANNOT_TELL}


def test_what_is_missing_for_a_certificate_is_said_as_in_the_readme(tmp_path: Path) -> None:
    (session,) = (session for session in blocks("console") if session.startswith("$ gradacc certificate"))
    prompt, _, shown = session.partition("\n")
    command = shlex.split(prompt.removeprefix("$ gradacc "))
    env = {**os.environ, "GRADACC_HOME": str(tmp_path)}
    run = subprocess.run([sys.executable, "-m", "gradacc_lessons", *command], capture_output=True, text=True, env=env)
    assert run.stdout == shown and run.returncode == 1

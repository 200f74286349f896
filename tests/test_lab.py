"""Opening the lessons: a copy never overwrites the learner's work, and JupyterLab is really there."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import pytest
import zmq
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from jupyter_client import BlockingKernelClient

from gradacc_lessons.cli import main
from gradacc_lessons.course import course_folder
from gradacc_lessons.lab import copy_lessons, lessons_folder

CONTENT = st.dictionaries(st.sampled_from(["00_a.ipynb", "01_b.ipynb", "02_c.ipynb"]), st.binary(max_size=3))


def test_in_the_repository_the_lessons_are_opened_where_they_are():
    folder, sentence = lessons_folder(None)
    assert folder == course_folder("notebooks")
    assert str(folder) in sentence


@given(course=CONTENT, mine=CONTENT)
def test_a_copy_adds_what_is_missing_and_keeps_what_is_there(tmp_path_factory, course, mine):
    source, target = tmp_path_factory.mktemp("course"), tmp_path_factory.mktemp("mine")
    for folder, files in ((source, course), (target, mine)):
        for name, content in files.items():
            (folder / name).write_bytes(content)
    copied = copy_lessons(source, target)
    assert {path.name: path.read_bytes() for path in target.iterdir()} == {**course, **mine}
    assert set(copied.new) == course.keys() - mine.keys()
    assert set(copied.kept) == {name for name in course.keys() & mine.keys() if course[name] != mine[name]}


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("afile/x", "{tmp}/afile/x: Not a directory"),
        ("{tmp}/odd", "{tmp}/odd/00_start_here.ipynb: Is a directory"),
        ("{tmp}/" + "x" * 300, ": File name too long"),
    ],
    ids=["below_a_file", "a_folder_in_the_way", "too_long"],
)
def test_a_folder_that_cannot_be_is_a_sentence(tmp_path, monkeypatch, folder, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "afile").write_text("not a folder", encoding="utf-8")
    (tmp_path / "odd" / "00_start_here.ipynb").mkdir(parents=True)
    ended = CliRunner().invoke(main, ["lab", "--folder", folder.format(tmp=tmp_path)], catch_exceptions=False)
    assert ended.exit_code == 1
    assert ended.output.startswith("Error: ") and words.format(tmp=tmp_path) in ended.output
    assert len(ended.output.splitlines()) == 1


@contextmanager
def running(*options, home, stdin=subprocess.DEVNULL, **streams):
    """`gradacc lab` as for somebody who has never started a JupyterLab, and the address that it says."""
    before = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "IPYTHON"))}
    env = before | {"HOME": str(home), "GRADACC_HOME": str(home / "kept")}
    command = [sys.executable, "-m", "gradacc_lessons", "lab", "--no-browser", *options]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": stdin, **streams}
    with subprocess.Popen(command, env=env, text=True, **streams) as process:
        try:
            said = []
            for line in process.stdout:
                said.append(line.strip())
                if said[-1].startswith("Progress"):
                    break
            (address,) = (line.split()[1] for line in said if line.startswith("Open "))
            yield process, said, address
        finally:
            process.kill()


def get(address, path=""):
    """What the server answers; `path` is taken in place of the address's own."""
    whole = urlsplit(address)
    with urllib.request.urlopen(urlunsplit(whole._replace(path=path or whole.path)), timeout=30) as page:
        return page.read()


def test_it_says_where_the_first_lesson_is_how_to_stop_and_where_progress_is_kept(tmp_path):
    mine = tmp_path / "my lessons"
    mine.mkdir()
    (mine / "01_accumulate.ipynb").write_text("my own work", encoding="utf-8")
    with running("--folder", str(mine), "--port=0", home=tmp_path) as (process, said, address):
        assert "Your own versions of 01_accumulate.ipynb were left alone" in said[0]
        assert urlsplit(address).path == "/lab/tree/00_start_here.ipynb"
        assert b"JupyterLab" in get(address)
        assert any(line.startswith("Stop ") and "Ctrl-C" in line for line in said)
        assert said[-1].split()[1] == str(tmp_path / "kept" / "progress.sqlite")
        process.terminate()
        assert process.wait(30) == 0
    assert not (tmp_path / ".jupyter").exists()
    assert (mine / "01_accumulate.ipynb").read_text(encoding="utf-8") == "my own work"
    assert {path.name for path in course_folder("notebooks").glob("*.ipynb")} <= {path.name for path in mine.iterdir()}


def test_nobody_is_asked_about_news_and_who_wants_them_still_gets_them(tmp_path):
    """The default is ours; what learners have set for their JupyterLab is neither written nor overruled."""
    own = tmp_path / ".jupyter" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    own.mkdir(parents=True)
    (own / "notification.jupyterlab-settings").write_text('{"fetchNews": "true"}', encoding="utf-8")
    with running("--folder", str(tmp_path / "mine"), "--port=0", home=tmp_path) as (_, _, address):
        settings = json.loads(get(address, "/lab/api/settings/@jupyterlab/apputils-extension:notification"))
    assert settings["schema"]["properties"]["fetchNews"]["default"] == "false"
    assert settings["settings"] == {"fetchNews": "true"}
    assert {path.name for path in own.iterdir()} == {"notification.jupyterlab-settings"}


def test_a_port_that_is_taken_is_said_and_another_one_is_used(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        with running("--folder", str(tmp_path / "mine"), f"--port={taken}", home=tmp_path) as (_, said, address):
            port = urlsplit(address).port
            assert port != taken and b"JupyterLab" in get(address)
            assert f"Port {taken} is taken by another program, so the lessons are on port {port}." in said


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("option", "path"),
    [
        ("--ServerApp.log_level=ERROR", "/lab/tree/00_start_here.ipynb"),
        ("--LabApp.log_level=CRITICAL", "/lab/tree/00_start_here.ipynb"),
        ("--LabApp.default_url=/lab", "/lab"),
        ("--ServerApp.allow_root=True", "/lab/tree/00_start_here.ipynb"),
    ],
)
def test_what_a_learner_asks_for_goes_before_what_the_course_sets(tmp_path, option, path):
    with running("--folder", str(tmp_path / "mine"), "--port=0", option, home=tmp_path) as (_, said, address):
        assert urlsplit(address).path == path and b"JupyterLab" in get(address)
        assert not any("is taken" in line for line in said)


def wait_until_ready(client, seconds=60):
    """The client takes a heartbeat that is late, as on a busy machine, for a dead kernel: then it waits again."""
    end = time.monotonic() + seconds
    while True:
        try:
            return client.wait_for_ready(timeout=max(end - time.monotonic(), 1))
        except RuntimeError:
            if time.monotonic() > end:
                raise


@pytest.mark.long
def test_kernels_start_without_a_warning_and_one_ctrl_c_in_a_terminal_ends_everything(tmp_path):
    ours, theirs = pty.openpty()
    with running(
        "--folder", str(tmp_path / "mine"), "--port=0", home=tmp_path, stdin=theirs, start_new_session=True
    ) as (process, _, address):
        os.close(theirs)
        whole = urlsplit(address)
        kernels = urlunsplit(whole._replace(path="/api/kernels", query=""))
        begin = urllib.request.Request(
            kernels, data=b"{}", headers={"Authorization": f"token {whole.query.partition('=')[2]}"}
        )
        with urllib.request.urlopen(begin, timeout=30) as begun:
            (connection,) = tmp_path.rglob(f"kernel-{json.load(begun)['id']}.json")
        client = BlockingKernelClient(connection_file=str(connection))
        client.load_connection_file()
        client.start_channels()
        wait_until_ready(client)
        client.stop_channels()
        assert client.curve_publickey or not zmq.has("curve")
        os.killpg(process.pid, signal.SIGINT)  # as the terminal does
        rest, _ = process.communicate(timeout=30)
        assert process.returncode == 0
        assert rest.split() == ["JupyterLab", "has", "stopped."]
        assert not connection.exists()
    os.close(ours)

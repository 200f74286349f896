"""A file is on the disk whole or not at all, under its name; and what several processes change, they change in turn."""

import os
import stat
from pathlib import Path

import pytest

from gradacc_lessons.whole_file import LOCK, alone, open_to_others, write_whole

POSIX = pytest.mark.skipif(os.name != "posix", reason="permissions and folders of another kind")


@POSIX
def test_on_return_the_disk_has_the_bytes_and_then_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, real, asked = tmp_path / "a.txt", os.fsync, []

    def fsync(descriptor: int) -> None:
        asked.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), file.exists()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    write_whole(file, b"one")
    assert asked == [(False, False), (True, True)] and file.read_bytes() == b"one"


def test_a_file_that_cannot_be_written_is_named_and_the_old_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.txt"
    write_whole(file, b"one")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as refused:
        write_whole(file, b"two")
    assert refused.value.filename == str(file)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a.txt", b"one")]


def test_without_over_the_first_one_stays(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.txt", b"one", over=False)
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "a.txt", b"two", over=False)
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a.txt", b"one")]


@POSIX
def test_what_is_private_is_nobody_elses_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_whole(tmp_path / "mine", b"x", private=True)
        write_whole(tmp_path / "ours", b"x")
    finally:
        os.umask(before)
    assert not open_to_others(tmp_path / "mine") and open_to_others(tmp_path / "ours")


def test_who_holds_a_folder_holds_the_next_one_and_lets_go_after_an_error(tmp_path: Path) -> None:
    with alone(tmp_path), pytest.raises(TimeoutError), alone(tmp_path, patience=0.0):
        pass
    with pytest.raises(ZeroDivisionError), alone(tmp_path):
        raise ZeroDivisionError
    with alone(tmp_path, patience=0.0):
        assert (tmp_path / LOCK).exists()

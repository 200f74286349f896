"""One file is one exhibit: put one into the folder and it is in the museum."""

from pathlib import Path

import pytest

from gradacc_lessons.museum.collection import FOLDER, exhibit, exhibits
from gradacc_lessons.museum.visit import run_exhibit, visit

SOURCE = (FOLDER / "accelerate_1773.py").read_text(encoding="utf-8")


def test_every_file_is_an_exhibit_with_the_files_name() -> None:
    files = {file.stem.replace("_", "-") for file in FOLDER.glob("*.py") if file.stem != "__init__"}
    assert files == set(exhibits()) == {one.id for one in exhibits().values()}


def test_a_file_more_is_an_exhibit_more(tmp_path: Path) -> None:
    (tmp_path / "my_loop_1.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "my_loop_2.py").write_text(SOURCE.replace('"Accelerate", 2023', '"Accelerate", 2022'))
    found = exhibits(tmp_path)
    assert list(found) == ["my-loop-2", "my-loop-1"]  # the oldest first
    seen = visit(found["my-loop-1"])
    assert seen.found and seen.bug.findings == ("double_scale",)
    assert "my-loop-1" not in exhibits()


@pytest.mark.parametrize("text", ["", SOURCE + SOURCE.replace("class Accelerate1773", "class Another")])
def test_a_file_holds_one_class(tmp_path: Path, text: str) -> None:
    (tmp_path / "not_one.py").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"not_one\.py must hold one class of exhibit, and it holds [02]"):
        exhibits(tmp_path)


def test_an_id_that_is_none_is_a_sentence_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"no exhibit 'nanogpt'; there are .*nanogpt-168"):
        exhibit("nanogpt")


def test_an_exhibit_is_run_by_its_id() -> None:
    assert run_exhibit("accelerate-1773").row()["after_fix"] == pytest.approx(1.0)

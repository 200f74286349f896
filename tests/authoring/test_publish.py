"""Publishing writes one address everywhere, once, and nothing when the name cannot be one."""

import shutil
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradacc_lessons.authoring.cells import checked_repository
from gradacc_lessons.authoring.files import published_repository, read_notebook
from gradacc_lessons.authoring.publish import README_BEGIN, README_END, publish

OURS = Path(__file__).parents[2] / "pyproject.toml"


@pytest.fixture
def checkout(lesson, tmp_path):
    """A repository with the course's own pyproject.toml, a README and one lesson."""
    root = tmp_path / "checkout"
    (root / "notebooks").mkdir(parents=True)
    shutil.copyfile(lesson(), root / "notebooks" / "01_accumulate.ipynb")
    shutil.copyfile(OURS, root / "pyproject.toml")
    (root / "README.md").write_text(f"# Title\n{README_BEGIN}\nnothing yet\n{README_END}\nend\n", encoding="utf-8")
    return root


def contents(root):
    return {path: path.read_text(encoding="utf-8") for path in root.rglob("*") if path.is_file()}


def test_the_address_reaches_every_file(checkout):
    changed = publish("owner/name", root=checkout)
    assert changed == ["pyproject.toml", "README.md", "notebooks/01_accumulate.ipynb"]
    assert published_repository(checkout) == "owner/name"
    badge, setup = (cell["source"] for cell in read_notebook(checkout / "notebooks" / "01_accumulate.ipynb").cells[1:3])
    colab = "https://colab.research.google.com/github/owner/name/blob/main/notebooks/01_accumulate.ipynb"
    assert f"]({colab})" in badge
    assert "](https://mybinder.org/v2/gh/owner/name/main?labpath=notebooks%2F01_accumulate.ipynb)" in badge
    assert '%pip install --quiet --no-deps "git+https://github.com/owner/name"' in setup
    readme = (checkout / "README.md").read_text(encoding="utf-8")
    assert "owner/name/blob/main/notebooks/00_start_here.ipynb" in readme
    assert "nothing yet" not in readme and readme.endswith("end\n")


def test_publishing_leaves_the_rest_of_pyproject_as_it_is(checkout):
    before = tomllib.loads(OURS.read_text(encoding="utf-8"))
    publish("owner/name", root=checkout)
    after = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))
    before["project"].setdefault("urls", {})["Repository"] = "https://github.com/owner/name"
    assert after == before


def test_a_second_time_changes_nothing_and_another_name_replaces_the_first(checkout):
    publish("owner/name", root=checkout)
    before = contents(checkout)
    assert publish("owner/name", root=checkout) == []
    assert contents(checkout) == before
    publish("other/fork", root=checkout)
    assert not [path for path, text in contents(checkout).items() if "owner/name" in text]


def test_other_addresses_in_pyproject_stay(checkout):
    file = checkout / "pyproject.toml"
    publish("owner/name", root=checkout)
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("[project.urls]\n", '[project.urls]\nIssues = "https://example.org"\n'), "utf-8")
    publish("other/fork", root=checkout)
    urls = tomllib.loads(file.read_text(encoding="utf-8"))["project"]["urls"]
    assert urls == {"Issues": "https://example.org", "Repository": "https://github.com/other/fork"}


def test_a_dry_run_says_the_same_and_writes_nothing(checkout):
    before = contents(checkout)
    assert publish("owner/name", dry_run=True, root=checkout) == publish("owner/name", dry_run=True, root=checkout)
    assert contents(checkout) == before
    assert publish("owner/name", root=checkout) != []


def test_an_unreadable_notebook_stops_it_before_anything_is_written(checkout):
    (checkout / "notebooks" / "02_broken.ipynb").write_text("no notebook", encoding="utf-8")
    before = contents(checkout)
    with pytest.raises(ValueError, match=r"02_broken\.ipynb"):
        publish("owner/name", root=checkout)
    assert contents(checkout) == before


@pytest.mark.parametrize(
    "name",
    ["", "name", "owner/", "/name", "owner/name/more", "https://github.com/owner/name", "owner/name.git",
     "-owner/name", "owner/..", "own er/name", 'owner/na"me', "owner/name\n", "öwner/name"],
)  # fmt: skip
def test_what_cannot_be_a_repository_is_refused_in_a_sentence(checkout, name):
    before = contents(checkout)
    with pytest.raises(ValueError, match="must be written as OWNER/NAME"):
        publish(name, root=checkout)
    assert contents(checkout) == before


@given(st.text(max_size=60))
def test_an_accepted_name_is_harmless_in_toml_markdown_and_a_shell(name):
    try:
        checked_repository(name)
    except ValueError:
        return
    assert name.isascii()
    assert not set(name) & set("\"'\\`$()[]<>|&; \n\t%#?")

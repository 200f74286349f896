"""The names that the package offers, whatever was imported before."""

import subprocess
import sys

import pytest

import gradacc_lessons


@pytest.mark.parametrize("name", gradacc_lessons.__all__)
def test_every_public_name_is_a_class_or_function_also_after_its_module_was_imported(name: str) -> None:
    for _ in range(2):
        found = getattr(gradacc_lessons, name)
        assert callable(found) and found.__name__ == name


def test_import_does_not_load_torch() -> None:
    check = "import sys, gradacc_lessons; sys.exit(any(m in sys.modules for m in ('torch', 'pandas', 'matplotlib')))"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_an_unknown_name_says_what_there_is() -> None:
    with pytest.raises(AttributeError, match=f"offers {', '.join(gradacc_lessons.__all__)}"):
        gradacc_lessons.accumulat  # type: ignore[attr-defined] # noqa: B018

"""Every benchmark runs, prints its figures, and compares like with like. Nothing about time is asserted."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks.__main__ import BENCHMARKS, OPTIONAL, PAGE, main
from benchmarks.loops import CONTENDERS, N
from benchmarks.memory import memory_predicted_cuda
from benchmarks.report import Result, as_text, method, title
from benchmarks.row import Row, in_turns, median_row, row_95
from gradacc_lessons.accumulation import split
from gradacc_lessons.lessons.training import parameters
from gradacc_lessons.tasks import digits

ROOT = Path(__file__).resolve().parent.parent
NAMES = [benchmark.__name__ for benchmark in BENCHMARKS]
FIGURE = re.compile(r"^  \S.*  -?\d[\d.e-]* (s|ms|µs|/s|x|%|MiB|GiB|runs|batches)( |$)", re.MULTILINE)
NEEDS = {
    "loops": {"accelerate", "lightning"},
    "memory_of_seven_billion": {"transformers"},
    "memory_predicted": {"transformers", "peft"},
}
"""The optional packages that a benchmark needs."""
QUICK = {"redraw", "gradients", "first_point"}
"""What `make test` tries; a quick run of all the others takes minutes."""


def _quick(names: list[str]) -> str:
    command = [sys.executable, "-m", "benchmarks", "--quick", *names]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def quick_run() -> str:
    """What one quick run of those about speed prints."""
    return _quick(sorted(QUICK))


@pytest.mark.parametrize("name", sorted(QUICK))
def test_it_runs_and_prints_its_figures(name: str, quick_run: str) -> None:
    _check(name, quick_run)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted({*NAMES} - QUICK))
def test_so_do_all_others(name: str) -> None:
    _check(name, _quick([name]))


def _check(name: str, printed: str) -> None:
    benchmark = BENCHMARKS[NAMES.index(name)]
    _, found, after = printed.partition(f"\n{title(benchmark)}\n")
    assert found
    block = after.partition("\n\n")[0] + "\n"
    absent = [package for package in NEEDS.get(name, ()) if importlib.util.find_spec(package) is None]
    if benchmark is memory_predicted_cuda and not torch.cuda.is_available():
        assert block == "  not measured: there is no CUDA device here\n"
    elif absent:
        assert any(f"{package} is not installed" in block for package in absent)
    else:
        assert len(FIGURE.findall(block)) >= 2, block


def test_it_says_on_which_machine(quick_run: str) -> None:
    assert f"PyTorch: {torch.__version__}" in quick_run
    assert "Processor: " in quick_run


@pytest.mark.parametrize("name", CONTENDERS)
@pytest.mark.parametrize("model", ["mlp", "cnn"])
def test_the_loops_that_are_compared_do_the_same(name: str, model: str) -> None:
    if name in ("Accelerate", "Lightning"):
        pytest.importorskip(name.lower())
    task = digits(model, dtype=torch.float64)
    micro_batches = split(task.train, 8)[: 3 * N]
    ours, _ = CONTENDERS["by hand"](task, micro_batches)
    theirs, seconds = CONTENDERS[name](task, micro_batches)
    assert seconds > 0
    assert (parameters(theirs) - parameters(ours)).abs().max() <= 1e-12
    assert (parameters(ours) - parameters(task.build_model())).abs().max() > 1e-3


def test_the_page_says_what_is_measured() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for benchmark in BENCHMARKS:
        assert f"\n## {title(benchmark)}\n\n{method(benchmark)}\n" in page, "run `python -m benchmarks --write`"
    left_out = re.findall(r"^## (.*)\n(?:(?!## )[^\n]*\n)*?This was not measured", page, re.MULTILINE)
    # Until a run on a card has been made and kept.
    assert set(left_out) <= {title(memory_predicted_cuda)}


def test_every_optional_package_belongs_to_a_benchmark() -> None:
    assert set().union(*NEEDS.values()) == OPTIONAL
    assert set(NEEDS) < set(NAMES)


def test_goals_are_met_missed_or_not_there() -> None:
    assert Row("a", 39.0, "ms", at_most=40).met is True
    assert Row("a", 41.0, "ms", at_most=40).met is False
    assert Row("a", 5.9, "x", at_least=6).met is False
    assert Row("a", 6.0, "x", at_least=6).met is True
    assert Row("a", 6.0, "x").met is None
    table = as_text([Result(BENCHMARKS[0], [Row("a", 41.0, "ms", at_most=40)])], [("GPU", "none")])
    assert re.search(r"a +41 ms +at most 40 ms +NO\n", table)


def test_medians_and_percentiles() -> None:
    middle = median_row("a", [0.001, 0.002, 0.003, 0.004, 1.0], "ms")
    assert (middle.value, middle.quartiles) == (3.0, (2.0, 4.0))
    assert median_row("a", [2.0], "x").measured == "2.0 x (2.0 to 2.0)"
    assert row_95("a", [k / 1000 for k in range(1, 101)]).value == pytest.approx(95)
    assert row_95("a", [0.5]).value == pytest.approx(500)


def test_contenders_take_turns_after_one_to_warm_up() -> None:
    calls: list[str] = []
    contenders = {name: lambda name=name: float(len(calls.append(name) or calls)) for name in "ab"}
    assert in_turns(contenders, rounds=2) == {"a": [3.0, 5.0], "b": [4.0, 6.0]}
    assert calls == list("ababab")


@pytest.mark.parametrize(
    ("arguments", "said"), [(["redrawn"], "there is no benchmark 'redrawn'"), (["--write", "--quick"], "--write needs")]
)
def test_what_cannot_be_asked_is_answered_in_a_sentence(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert said in capsys.readouterr().err

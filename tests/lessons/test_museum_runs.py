"""Lesson 09: what the exhibits do at another b and N, measured again where that can be worked out."""

import math
from contextlib import suppress

import pytest
import torch

from gradacc_lessons.lessons import museum_runs
from gradacc_lessons.lessons.museum_runs import SHOWS, all_at, check_possible, differences, final, numbers, own
from gradacc_lessons.museum.collection import exhibit, exhibits
from gradacc_lessons.museum.kinds import ModelExhibit
from gradacc_lessons.museum.scene import Scene

NAMES = list(exhibits())
MODELS = [name for name in NAMES if isinstance(exhibit(name), ModelExhibit)]
LOOPS = [name for name in NAMES if name not in MODELS]
AROUND_THE_WINDOW = {"everydream2trainer-175", "espnet-3283"}
"""Bugs that show at N = 1 too: of a threshold before unscaling, and of an update that is skipped."""
MEMORY_ONLY = {"torchtune-1917"}
NO_TAIL_AT_4 = {"torchtune-2745"}
"""Its epoch of 63 eighths of a window is cut into 32 micro-batches there, which N divides."""


@pytest.fixture(scope="module")
def by_steps() -> dict[int, dict[str, bool]]:
    """Whether each exhibit's bug shows, by N."""
    return {steps: {row["name"]: row["shows"] for row in all_at(steps)} for steps in (1, 2, 4)}


def test_at_n_1_nothing_shows_but_what_is_around_a_window(by_steps: dict[int, dict[str, bool]]) -> None:
    assert {name for name, shows in by_steps[1].items() if shows} == AROUND_THE_WINDOW


def test_at_n_4_every_bug_shows_unless_it_is_one_of_memory_or_needs_a_tail(
    by_steps: dict[int, dict[str, bool]],
) -> None:
    assert {name for name, shows in by_steps[4].items() if not shows} == MEMORY_ONLY | NO_TAIL_AT_4
    assert all(final(name, 8, 8) > SHOWS for name in NO_TAIL_AT_4)


def test_what_the_page_says_of_the_whole_museum(by_steps: dict[int, dict[str, bool]]) -> None:
    at_one, at_two = (sum(by_steps[steps].values()) for steps in (1, 2))
    assert at_one < len(NAMES) / 5 and at_two > 2 * len(NAMES) / 3
    assert all(final(name, 2, 8) < SHOWS for name in MEMORY_ONLY)


@pytest.mark.parametrize(("b", "n"), [(8, 2), (4, 4), (2, 8), (3, 5)])
def test_a_missing_division_by_n_goes_n_minus_one_times_too_far_in_its_first_update(b: int, n: int) -> None:
    """Before the weights have moved the gradient is N times too long: after the update it is N - 1 ways ahead."""
    rows = list(differences("nanogpt-168", b, n))
    whole = rows[2 * n]["bug"]  # after the second window, whose gradients are taken elsewhere
    first = rows[n]["bug"]
    assert rows[n - 1]["bug"] == 0 and first > 0
    small = list(differences("accelerate-1773", b, n))
    assert first / small[n]["bug"] == pytest.approx((n - 1) / (1 - 1 / n), rel=1e-9)
    assert whole > first


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_has_a_row_before_each_micro_batch_and_one_in_the_end(name: str) -> None:
    rows = list(differences(name, 4, 2))
    assert [row["position"] for row in rows] == list(range(len(rows)))
    assert rows[0]["bug"] == 0 and all(row["fixed"] == 0 for row in rows)
    assert len(rows) > 2


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_exact_in_one_micro_batch_and_after_the_fix_in_any(name: str) -> None:
    found = own(name)
    rows = list(differences(name, found.micro_batch_size, found.accumulation_steps))
    assert [row["position"] for row in rows] == sorted((row["position"] for row in rows), reverse=True)
    assert rows[0]["position"] == found.micro_batch_size * found.accumulation_steps and rows[0]["bug"] < SHOWS
    assert rows[-1]["bug"] > SHOWS
    assert all(row["fixed"] < SHOWS for row in rows)
    assert rows[-1]["bug"] == pytest.approx(numbers(name)["bug"])


@pytest.mark.parametrize("name", ["deepspeed-1800", "espnet-3283", "trl-2175"])
def test_the_same_run_gives_the_same_numbers(name: str) -> None:
    one, other = (list(differences(name, 4, 2)) for _ in range(2))
    assert all(
        a["bug"] == b["bug"] or (math.isnan(a["bug"]) and math.isnan(b["bug"])) for a, b in zip(one, other, strict=True)
    )


def test_all_at_has_each_exhibit_once_and_its_own_window() -> None:
    rows = list(all_at(2))
    assert [row["name"] for row in rows] == NAMES
    for row in rows:
        found = own(row["name"])
        window = found.micro_batch_size * found.accumulation_steps
        assert row["difference"] == final(row["name"], window // 2, 2)
        assert row["shows"] == (row["difference"] > SHOWS)


def test_a_window_that_a_model_has_no_examples_for_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="16 x 16 = 256"):
        check_possible("sentence-transformers-1822", 16, 16)
    check_possible("nanogpt-168", 16, 16)  # a loop's examples can be taken again


def test_a_run_that_goes_nowhere_after_the_fix_either_is_no_difference() -> None:
    """At b = 16 and N = 16 the examples come again and again, so each window has the broken one and is skipped."""
    rows = list(differences("espnet-3283", 16, 16))
    assert rows and all(row["bug"] == 0 for row in rows)


def test_a_difference_that_is_no_number_is_infinite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(museum_runs, "_drift", lambda *_: iter([{"bug": float("nan")}]))
    assert final("nanogpt-168", 13, 13) == math.inf
    final.cache_clear()


def test_most_loops_train_with_their_bug_and_their_loss_goes_down() -> None:
    """What the page says of the whole museum."""
    lower = []
    for name in LOOPS:
        one, scene = exhibit(name), museum_runs._scene(exhibit(name))
        before = scene_loss(scene)
        with suppress(*getattr(one, "stops", ())):
            scene.run(one.code("bug"), 2)
        lower.append(scene_loss(scene) < before)
    assert sum(lower) > 2 * len(LOOPS) / 3


def scene_loss(scene: Scene) -> float:
    """The mean over an epoch's micro-batches."""
    with torch.no_grad():
        return float(sum(scene.loss_fn(scene.model, batch) for batch in scene.micro_batches))

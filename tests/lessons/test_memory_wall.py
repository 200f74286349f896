"""Lesson 03's first explorer: measured parts add up, predictions meet them, and every control moves the run."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gradacc_lessons.lessons import memory_wall
from gradacc_lessons.lessons.memory_timeline import TimelineFigure, parts_table, timeline
from gradacc_lessons.lessons.memory_wall import (
    MOST_STEPS,
    PREDICTED_FOR,
    SIZES,
    STEPS,
    BytesFigure,
    axis_end,
    bytes_by_point,
    bytes_sentence,
    explore_bytes,
    points_of,
)
from gradacc_lessons.lessons.peaks import NAMES, OPTIMIZERS, measured, predicted, recipe_for, shorter
from gradacc_lessons.lessons.training import collect
from gradacc_lessons.memory.allocator import allocator_peak, bytes_in_use
from gradacc_lessons.memory.loop import one_update
from gradacc_lessons.memory.profile import CATEGORIES
from gradacc_lessons.memory.sizes import MEBIBYTE
from gradacc_lessons.optimizers import make_optimizer
from gradacc_lessons.progress import Progress
from gradacc_lessons.quiz.quiz import Quiz
from gradacc_lessons.tasks import chat

PATIENCE = 120.0  # seconds; only a hang comes near it
PREDICTED_WITHIN = 0.005  # what the issue of the memory room allows
ALLOCATOR_WITHIN = 0.001


@pytest.fixture(scope="module")
def points() -> pd.DataFrame:
    """One run with short examples, which is quick."""
    return collect(bytes_by_point(32, recipe_for("adamw", 4, 2), "adamw", 30.0))


def test_the_parts_of_a_bar_are_its_peak_and_the_prediction_meets_it(points: pd.DataFrame) -> None:
    assert points[list(CATEGORIES)].sum(axis=1).to_list() == pytest.approx(points["measured"].to_list())
    assert points["predicted"].to_list() == pytest.approx(points["measured"].to_list(), rel=PREDICTED_WITHIN)
    assert len(points) == points_of(recipe_for("adamw", 4, 2)) == len(SIZES) + len(STEPS) - 1
    assert set(points[points["accumulation_steps"] == 2]["micro_batch_size"]) == set(SIZES)
    assert set(points[points["micro_batch_size"] == 4]["accumulation_steps"]) == set(STEPS)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_what_is_measured_is_what_the_allocator_reports(optimizer: str) -> None:
    recipe = recipe_for(optimizer, 8, 2)
    task = shorter(chat(), 64)
    model = task.build_model()
    updates = make_optimizer(model, recipe)
    window = [task.make_batch(8) for _ in range(2)]
    one_update(model, updates, window, task.loss_fn, recipe)
    before = bytes_in_use(model, updates, window)
    counted = allocator_peak(lambda: one_update(model, updates, window, task.loss_fn, recipe), before)
    assert measured(64, recipe).peak_bytes == pytest.approx(counted, rel=ALLOCATOR_WITHIN)
    assert predicted(64, recipe).peak_bytes == pytest.approx(counted, rel=PREDICTED_WITHIN)


def test_the_peak_is_a_line_in_b_and_one_step_in_n() -> None:
    low, middle, high = (measured(64, recipe_for("adamw", b, 2)).peak_bytes for b in (4, 8, 16))
    assert high - middle == pytest.approx(2 * (middle - low), rel=0.001)
    gradients = sum(parameter.nbytes for parameter in chat().build_model().parameters())
    batch = sum(tensor.nbytes for tensor in shorter(chat(), 64).make_batch(16))
    one, two, four = (measured(64, recipe_for("adamw", 16, n)).peak_bytes for n in (1, 2, 4))
    assert two - one == gradients + batch
    assert four - two == 2 * batch


def test_a_shorter_task_is_the_same_task_with_fewer_tokens() -> None:
    whole = chat()
    short = shorter(whole, 32)
    assert short.train[0].shape == (whole.examples, 32)
    assert (short.train[0] == whole.train[0][:, :32]).all()
    assert short.test[1].shape[1] == 32
    assert short.count(short.make_batch(16)) > 0  # something to learn from, so that the loss is a number


def test_each_control_moves_the_run() -> None:
    explorer = explore_bytes()
    seen = set()
    for values in (
        {"length": 32},
        {"micro_batch_size": 3},
        {"accumulation_steps": 3},
        *({"optimizer": name} for name in ("sgd", "adamw_foreach")),
    ):
        explorer.set(**values)
        explorer.wait(PATIENCE)
        seen.add(explorer.sentence)
        assert explorer.values.items() >= values.items()
        assert explorer.data.iloc[0][["b", "n"]].to_list() == [
            explorer.values["micro_batch_size"],
            explorer.values["accumulation_steps"],
        ]
    assert len(seen) == 5
    assert explorer.sentence.startswith(f"b = 3, N = 3, {NAMES['adamw_foreach']}, T = 32 tokens: the peak is")
    for impossible, sentence in (
        ({"micro_batch_size": 0}, f"whole number from 1 to {PREDICTED_FOR}"),
        ({"accumulation_steps": 99}, f"whole number from 1 to {MOST_STEPS}"),
        ({"length": 100}, "must be one of"),
        ({"optimizer": "lion"}, "must be one of"),
    ):
        with pytest.raises(ValueError, match=sentence):
            explorer.set(**impossible)


def test_the_explorer_asks_for_the_prediction_at_each_run(tmp_path: Path) -> None:
    quiz = Quiz("03", progress=Progress(tmp_path / "progress.sqlite"))
    explorer = explore_bytes(quiz.predicted("mem-predict-peak"))
    explorer.set(length=32)
    explorer.wait(PATIENCE)
    assert "predicted 55" not in explorer.sentence
    quiz.answer("mem-predict-peak", 55)
    explorer.start()
    explorer.wait(PATIENCE)
    assert explorer.sentence.endswith("You predicted 55 MiB for b = 16.")


@pytest.mark.parametrize("guess", [30.0, -3.0, 1e9])
def test_a_prediction_is_drawn_inside_the_picture_whatever_it_is(points: pd.DataFrame, guess: float) -> None:
    figure = BytesFigure()
    figure.draw(points.assign(prediction=guess))
    assert figure._guess_words.get_text() == f"your prediction: {guess:g} MiB"
    at, height = figure._guess.get_data()
    low, high = figure._sizes.ax.get_ylim()
    assert list(at) == [0, PREDICTED_FOR]
    assert low <= height[-1] < high
    assert high < 3 * points["measured"].max()  # a wild guess does not flatten the bars


def test_without_a_prediction_none_is_drawn(points: pd.DataFrame) -> None:
    figure = BytesFigure()
    figure.draw(points.assign(prediction=20.0))
    sentence = figure.update(points.assign(prediction=None))
    assert "You predicted" not in sentence
    assert len(figure._guess.get_data()[0]) == 0 and not figure._guess_words.get_text()


def test_bars_stand_on_one_another_at_their_places(points: pd.DataFrame) -> None:
    figure = BytesFigure()
    figure.draw(points)
    floor: dict[float, float] = {}
    for name in CATEGORIES:
        for path in figure._sizes._stacks[name].get_paths():
            (left, low), (right, _), (_, high) = path.vertices[:3]
            middle = round((left + right) / 2, 6)
            assert low == pytest.approx(floor.get(middle, 0.0))
            floor[middle] = high
    rows = points[points["accumulation_steps"] == 2].set_index("micro_batch_size")["measured"]
    assert floor == pytest.approx(rows.to_dict())


def test_the_sentence_names_the_largest_part(points: pd.DataFrame) -> None:
    first = points.iloc[0]
    largest = max(CATEGORIES, key=lambda name: first[name])
    assert f"The largest part is {largest}, with {first[largest]:.1f} MiB" in bytes_sentence(points)


def test_axes_end_at_round_numbers_a_little_above() -> None:
    for value in (0.3, 7.9, 8.0, 31.0, 89.0, 103.0, 1580.0):
        assert value <= axis_end(value) <= 1.5 * value


def test_the_static_twin_is_in_whole_mebibytes() -> None:
    explorer = explore_bytes()
    explorer.set(length=32)
    explorer.wait(PATIENCE)
    twin = explorer.static(length=32)
    assert list(twin.table.columns)[:2] == ["b", "N"]
    for name in twin.table.columns[2:]:
        assert twin.table[name].str.fullmatch(r"\d+").all()


def test_an_error_in_the_measurement_is_shown_and_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("no <memory> to count")

    monkeypatch.setattr(memory_wall, "measured", broken)
    explorer = explore_bytes()
    explorer.start()
    with pytest.raises(RuntimeError, match="to count"):
        explorer.wait(PATIENCE)
    assert "no &lt;memory&gt; to count" in explorer._message.value


def test_a_timeline_has_its_words_in_place_of_the_picture_and_its_parts_in_a_table() -> None:
    profile = measured(32, recipe_for("adamw", 4, 2))
    twin = timeline(profile)
    assert twin.sentence == profile.sentence
    assert f'alt="{TimelineFigure.description} {profile.sentence}"' in twin.picture
    assert list(twin.table["at the peak"]) == list(CATEGORIES)
    sizes = parts_table(profile)["MiB"].astype(float)
    assert sizes.sum() == pytest.approx(profile.peak_bytes / MEBIBYTE, abs=0.05 * len(CATEGORIES))
    figure = TimelineFigure(profile)
    assert figure.show(profile.timeline) == figure.show(profile.timeline)
    assert figure.png().startswith(b"\x89PNG") and (figure.width, figure.height) == (800, 420)

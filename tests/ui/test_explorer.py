"""Explorers without a browser: mailbox, worker, controls and errors."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pandas as pd
import pytest

from gradacc_lessons.ui import Choice, Explorer, LiveFigure, NumberSlider, Run

PATIENCE = 20.0  # seconds; only a hang comes near it


class Line(LiveFigure):
    description = "A line of values against their number."

    def draw(self, data: pd.DataFrame) -> str:
        (ax,) = self.new_axes()
        ax.set(xlim=(0, 50), ylim=(0, 500))
        (self._line,) = ax.plot([], [])
        self.moves(self._line)
        return self.update(data)

    def update(self, data: pd.DataFrame) -> str:
        self._line.set_data(data["number"], data["value"])
        return f"{len(data)} rows, the last is {data['value'].iloc[-1]}"


class Experiment:
    """Counts up in steps of `size`; remembers what it was asked for; can be told to go slowly or to break."""

    def __init__(self, pause: float = 0.0, breaks_at: int | None = None) -> None:
        self.pause, self.breaks_at = pause, breaks_at
        self.started: list[int] = []
        self.rows_made: list[tuple[int, int]] = []

    def rows(self, size: int, length: int) -> Iterator[dict[str, Any]]:
        self.started.append(size)
        for number in range(length):
            if number == self.breaks_at:
                raise RuntimeError("the <b>model</b> broke")
            time.sleep(self.pause)
            self.rows_made.append((size, number))
            yield {"number": number, "value": number * size}


class Asked:
    """A prediction, as a quiz asks for it."""

    def __init__(self, value: float | None = None) -> None:
        self.value = value
        self.told: list[Callable[[], None]] = []

    def __call__(self) -> float | None:
        return self.value

    def on_change(self, told: Callable[[], None]) -> Callable[[], None]:
        self.told.append(told)
        return lambda: self.told.remove(told)

    def answer(self, value: float | None) -> None:
        self.value = value
        for told in self.told:
            told()


def build(experiment: Experiment, length: int = 5, prediction: Asked | None = None) -> Explorer:
    def plan(size: int, kind: str) -> Run:
        if size == 7 and kind == "odd":
            raise ValueError("7 cannot be odd here")
        return Run(lambda: experiment.rows(size, length), length)

    controls = [
        NumberSlider("size", "Size", 1, 10, 2),
        Choice("kind", "Kind", [("Odd", "odd"), ("Even", "even")], "odd"),
    ]
    return Explorer(controls, plan, Line, lambda data: data.tail(1), prediction)


def slider(explorer: Explorer) -> Any:
    return explorer._controls["size"].slider  # type: ignore[attr-defined]


def field(explorer: Explorer) -> Any:
    return explorer._controls["size"].field  # type: ignore[attr-defined]


def test_set_does_what_the_slider_does() -> None:
    moved, told = build(Experiment()), build(Experiment())
    slider(moved).value = 4
    told.set(size=4)
    for explorer in (moved, told):
        explorer.wait(PATIENCE)
    assert moved.data.equals(told.data)
    assert moved.sentence == told.sentence == "5 rows, the last is 16"
    assert slider(told).value == field(told).value == field(moved).value == 4
    assert moved._picture.value == told._picture.value
    assert 'alt="A line of values against their number. 5 rows, the last is 16"' in told._picture.value


def test_every_control_moves_the_run() -> None:
    explorer = build(Experiment())
    for act in (lambda: setattr(field(explorer), "value", 9), lambda: explorer.set(kind="even")):
        act()
        explorer.wait(PATIENCE)
    assert explorer.values == {"size": 9, "kind": "even"}
    assert slider(explorer).value == 9
    assert list(explorer.data["value"]) == [0, 9, 18, 27, 36]


def test_a_newer_value_stops_the_older_run_within_one_row() -> None:
    experiment = Experiment(pause=0.02)
    explorer = build(experiment, length=50)
    explorer.set(size=3)
    while not experiment.rows_made:
        time.sleep(0.001)
    explorer.set(size=5)
    made = len([row for row in experiment.rows_made if row[0] == 3])
    explorer.wait(PATIENCE)
    after = len([row for row in experiment.rows_made if row[0] == 3])
    assert after <= made + 1
    assert len(explorer.data) == 50
    assert explorer.data["value"].iloc[-1] == 49 * 5


def test_of_many_waiting_values_only_the_latest_runs() -> None:
    experiment = Experiment(pause=0.05)
    explorer = build(experiment, length=3)
    for size in (3, 4, 5, 6, 8):
        explorer.set(size=size)
    explorer.wait(PATIENCE)
    assert experiment.started[-1] == 8
    assert len(experiment.started) <= 3
    assert list(explorer.data["value"]) == [0, 8, 16]


def test_callbacks_from_many_threads_leave_one_consistent_run() -> None:
    experiment = Experiment(pause=0.002)
    explorer = build(experiment, length=10)
    threads = [threading.Thread(target=explorer.set, kwargs={"size": size}) for size in range(1, 11) if size != 7]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    explorer.wait(PATIENCE)
    size = explorer.values["size"]
    assert list(explorer.data["value"]) == [number * size for number in range(10)]
    assert slider(explorer).value == field(explorer).value == size


def test_stop_keeps_what_was_seen_and_says_so() -> None:
    experiment = Experiment(pause=0.02)
    explorer = build(experiment, length=500)
    explorer.start()
    while len(experiment.rows_made) < 3:
        time.sleep(0.001)
    explorer.stop()
    explorer.wait(PATIENCE)
    assert 3 <= len(explorer.data) < 500
    assert "Stopped after" in explorer._state.value


def test_an_error_of_the_run_is_shown_inside_the_explorer_and_raised_by_wait() -> None:
    explorer = build(Experiment(breaks_at=3))
    explorer.set(size=4)
    with pytest.raises(RuntimeError, match="broke"):
        explorer.wait(PATIENCE)
    assert 'role="alert"' in explorer._message.value
    assert "the &lt;b&gt;model&lt;/b&gt; broke" in explorer._message.value
    explorer._plan = lambda **values: Run(lambda: Experiment().rows(1, 2), 2)
    explorer.set(size=5)
    explorer.wait(PATIENCE)
    assert explorer._message.value == ""


def test_an_error_in_a_callback_is_shown_and_not_swallowed() -> None:
    explorer = build(Experiment())

    def broken(**values: Any) -> Run:
        raise ZeroDivisionError("no plan")

    explorer._plan = broken
    with pytest.raises(ZeroDivisionError):
        slider(explorer).value = 5
    assert "no plan" in explorer._message.value


@pytest.mark.parametrize("impossible", [0, -4, 11, 10_000])
def test_the_field_refuses_a_number_out_of_range_with_a_sentence(impossible: int) -> None:
    explorer = build(Experiment())
    field(explorer).value = impossible
    assert f"Size must be a whole number from 1 to 10; you gave {impossible}" in explorer._message.value
    assert field(explorer).value == slider(explorer).value == 2
    with pytest.raises(ValueError, match="whole number from 1 to 10"):
        explorer.set(size=impossible)


def test_an_impossible_combination_is_refused_with_a_sentence() -> None:
    explorer = build(Experiment())
    explorer.start()
    explorer.wait(PATIENCE)
    slider(explorer).value = 7
    explorer.wait(PATIENCE)
    assert "7 cannot be odd here" in explorer._message.value
    assert "The picture still shows the run before." in explorer._message.value
    assert explorer.data["value"].iloc[-1] == 8
    with pytest.raises(ValueError, match="7 cannot be odd here"):
        explorer.start()
    with pytest.raises(ValueError, match="7 cannot be odd here"):
        explorer.set(size=7)
    explorer._run.click()
    assert "7 cannot be odd here" in explorer._message.value
    explorer.set(kind="even")
    explorer.wait(PATIENCE)
    assert explorer._message.value == ""
    assert explorer.data["value"].iloc[-1] == 28


def test_set_of_an_impossible_combination_moves_nothing_and_leaves_the_run_alone() -> None:
    experiment = Experiment(pause=0.01)
    explorer = build(experiment, length=20)
    explorer.set(size=6)
    with pytest.raises(ValueError, match="7 cannot be odd here"):
        explorer.set(size=7)
    assert explorer.values["size"] == slider(explorer).value == field(explorer).value == 6
    assert "7 cannot be odd here" in explorer._message.value
    explorer.wait(PATIENCE)
    assert len(explorer.data) == 20 and experiment.started == [6]


def test_an_impossible_combination_before_the_first_picture_is_told_truly_and_runs_once_it_is_possible() -> None:
    explorer = build(Experiment())
    slider(explorer).value = 7
    assert "7 cannot be odd here. It runs as soon as the values are possible." in explorer._message.value
    explorer._run.click()
    assert "7 cannot be odd here. It runs as soon as the values are possible." in explorer._message.value
    assert not explorer.running and nothing_shown(explorer)
    slider(explorer).value = 6
    explorer.wait(PATIENCE)
    assert explorer._message.value == "" and list(explorer.data["value"]) == [0, 6, 12, 18, 24]


# Interrupts


def test_an_interrupt_at_any_moment_leaves_an_explorer_that_works() -> None:
    explorer = build(Experiment(), length=1)
    explorer.start()
    explorer.wait(PATIENCE)
    moment, interrupted = 0, True
    while interrupted:
        interrupted = interrupted_at(moment, partial(explorer.set, size=3 + moment % 2))
        explorer.wait(PATIENCE)
        assert not explorer.running, moment
        set_aside = threading.Thread(target=explorer.set, kwargs={"size": 5}, daemon=True)
        set_aside.start()
        set_aside.join(PATIENCE)
        assert not set_aside.is_alive(), f"the lock is held after an interrupt at moment {moment}"
        explorer.wait(PATIENCE)
        assert explorer.values["size"] == slider(explorer).value == 5 and len(explorer.data) == 1
        moment += 1
    assert moment > 20


def interrupted_at(moment: int, act: Callable[[], None]) -> bool:
    """Whether `act` has so many moments that it was interrupted at this one.

    Python looks for interrupts where a function begins and where one of C's has returned.
    """
    left = moment
    here = ("threading.py", "ui/explorer.py", "ui/worker.py", "ui/controls.py")

    def strike(frame: Any, event: str, _: Any) -> None:
        nonlocal left
        if event in ("call", "c_return") and frame.f_code.co_filename.endswith(here):
            left -= 1
            if left < 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(strike)
    try:
        act()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(before)
    return False


@pytest.mark.parametrize("wrong", [{"colour": 3}, {"kind": "prime"}, {"size": "4"}, {"size": 2.5}, {"size": True}])
def test_set_refuses_what_no_control_can_show(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"there is no control|must be one of|whole number"):
        build(Experiment()).set(**wrong)


def test_static_runs_to_the_end_and_needs_no_widgets() -> None:
    explorer = build(Experiment())
    twin = explorer.static()
    assert twin.sentence == "5 rows, the last is 8"
    assert list(twin.table["value"]) == [8]
    page = twin._repr_html_()
    assert page.count("<img alt=") == 1 and "<table" in page and twin.sentence in page
    assert "rows, the last is 8" in repr(twin)


def test_static_shows_where_the_controls_began_or_what_is_given_and_moves_nothing() -> None:
    explorer = build(Experiment())
    explorer.set(size=4)
    explorer.wait(PATIENCE)
    live = explorer.sentence
    assert explorer.static().sentence == "5 rows, the last is 8"
    assert explorer.static(size=3).sentence == "5 rows, the last is 12"
    assert explorer.static(**explorer.values).sentence == live == explorer.sentence == "5 rows, the last is 16"
    with pytest.raises(ValueError, match="whole number from 1 to 10"):
        explorer.static(size=11)


def test_static_of_a_stopped_run_runs_again() -> None:
    experiment = Experiment(pause=0.02)
    explorer = build(experiment, length=20)
    explorer.start()
    explorer.stop()
    explorer.wait(PATIENCE)
    assert explorer.static().sentence.startswith("20 rows")
    assert experiment.started == [2, 2]


def test_static_asked_for_while_a_run_is_being_stopped_is_of_a_whole_run() -> None:
    for rows_before in (0, 1, 3):
        experiment = Experiment(pause=0.02)
        explorer = build(experiment, length=8)
        explorer.start()
        while len(experiment.rows_made) < rows_before:
            time.sleep(0.001)
        explorer.stop()
        assert explorer.static().sentence.startswith("8 rows")


def test_wait_says_how_long_it_waited() -> None:
    explorer = build(Experiment(pause=0.05), length=50)
    explorer.start()
    with pytest.raises(TimeoutError, match=r"after 0\.1 seconds"):
        explorer.wait(0.1)
    explorer.stop()
    explorer.wait(PATIENCE)


def test_no_thread_is_left_when_nothing_runs() -> None:
    def workers() -> int:
        return sum(frame.f_code.co_filename.endswith("worker.py") for frame in every_frame())

    def every_frame() -> Iterator[Any]:
        for frame in sys._current_frames().values():
            while frame is not None:
                yield frame
                frame = frame.f_back  # type: ignore[assignment]

    explorer = build(Experiment(pause=0.05))
    explorer.start()
    while not explorer.data.size:
        time.sleep(0.001)
    assert workers()
    explorer.wait(PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while workers() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not workers()


def test_an_exit_inside_the_experiment_is_heard_by_whoever_waits() -> None:
    def rows() -> Iterator[dict[str, Any]]:
        yield {"number": 0, "value": 1}
        raise SystemExit(3)

    explorer = build(Experiment())
    explorer._plan = lambda **values: Run(rows, 2)
    explorer.start()
    with pytest.raises(SystemExit):
        explorer.wait(PATIENCE)
    assert "Stopped by an error." in explorer._state.value
    explorer._plan = lambda **values: Run(lambda: Experiment().rows(2, 5), 5)
    explorer.start()
    explorer.wait(PATIENCE)
    assert len(explorer.data) == 5


def test_an_error_in_a_callback_does_not_spoil_the_run_that_is_fine() -> None:
    explorer = build(Experiment())
    explorer.start()
    explorer.wait(PATIENCE)
    explorer._plan = lambda **values: 1 / 0
    with pytest.raises(ZeroDivisionError):
        slider(explorer).value = 5
    explorer.wait(PATIENCE)
    assert len(explorer.data) == 5


# A prediction first


def nothing_shown(explorer: Explorer) -> bool:
    return explorer._picture.value == explorer._words.value == explorer.sentence == ""


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def waiting(asked: Asked) -> Explorer:
    """On the page, before the prediction."""
    explorer = build(Experiment(), prediction=asked)
    explorer._ipython_display_()
    return explorer


def test_it_waits_for_a_prediction_and_says_so(waiting: Explorer) -> None:
    assert waiting.waiting and not waiting.running and nothing_shown(waiting)
    assert waiting._state.value == '<span role="status">Predict first, above; or run without a prediction.</span>'
    assert waiting._run.description == "Run without a prediction"
    assert waiting._stop_button.layout.display == waiting._bar.layout.display == "none"


def test_it_runs_as_soon_as_there_is_a_prediction_and_again_when_it_changes(waiting: Explorer, asked: Asked) -> None:
    asked.answer(None)  # something else was answered
    assert waiting.waiting and nothing_shown(waiting)
    asked.answer(3.0)
    waiting.wait(PATIENCE)
    assert not waiting.waiting and waiting.sentence == "5 rows, the last is 8"
    assert waiting._run.description == "Run again"
    assert waiting._stop_button.layout.display is waiting._bar.layout.display is None
    for value, runs_again in ((3.0, False), (4.0, True)):
        waiting._picture.value = "gone"
        asked.answer(value)
        waiting.wait(PATIENCE)
        assert (waiting._picture.value != "gone") == runs_again


def test_a_prediction_at_an_impossible_combination_gets_a_sentence_and_no_error(
    waiting: Explorer, asked: Asked
) -> None:
    slider(waiting).value = 7
    assert waiting.waiting and nothing_shown(waiting)
    asked.answer(3.0)
    assert "7 cannot be odd here. It runs as soon as the values are possible." in waiting._message.value
    assert not waiting.running and nothing_shown(waiting)
    slider(waiting).value = 6
    waiting.wait(PATIENCE)
    assert waiting.sentence == "5 rows, the last is 24" and waiting._message.value == ""


def test_an_error_after_a_prediction_is_shown_in_the_explorer_and_not_given_to_who_predicted(
    waiting: Explorer, asked: Asked
) -> None:
    waiting._plan = lambda **values: 1 / 0
    asked.answer(3.0)
    assert "ZeroDivisionError" in waiting._message.value


def test_of_a_cell_that_is_run_again_only_the_last_explorer_trains(asked: Asked) -> None:
    experiment = Experiment()
    shown = [build(experiment, prediction=asked) for _ in range(6)]
    for explorer in shown:
        explorer._ipython_display_()
    asked.answer(3.0)
    shown[-1].wait(PATIENCE)
    assert len(experiment.started) == 1 and len(asked.told) == 1
    assert all(nothing_shown(explorer) for explorer in shown[:-1])


def test_a_cell_that_is_run_again_ends_the_run_that_it_began() -> None:
    slow = Experiment(pause=0.02)
    first = build(slow, length=500)
    first._ipython_display_()
    while len(slow.rows_made) < 2:
        time.sleep(0.001)
    build(Experiment())._ipython_display_()
    first.wait(PATIENCE)
    assert "Stopped after" in first._state.value and len(slow.rows_made) < 500


def test_an_explorer_that_is_shown_again_goes_on(asked: Asked) -> None:
    slow = Experiment(pause=0.01)
    explorer = build(slow, length=30, prediction=asked)
    explorer._ipython_display_()
    asked.answer(3.0)
    explorer._ipython_display_()
    explorer.wait(PATIENCE)
    assert len(explorer.data) == 30 and slow.started == [2] and len(asked.told) == 1


def test_with_a_prediction_made_before_it_does_not_wait() -> None:
    explorer = build(Experiment(), prediction=Asked(3.0))
    explorer._ipython_display_()
    explorer.wait(PATIENCE)
    assert explorer.sentence == "5 rows, the last is 8"


@pytest.mark.parametrize(
    "act",
    [
        lambda explorer: explorer._run.click(),
        lambda explorer: setattr(slider(explorer), "value", 4),
        lambda explorer: setattr(field(explorer), "value", 4),
        lambda explorer: explorer.set(kind="even"),
        lambda explorer: None,  # whoever waits for it wants it to run
    ],
    ids=["button", "slider", "field", "set", "wait"],
)
def test_it_runs_without_a_prediction_if_the_learner_wants_it(waiting: Explorer, act: Any) -> None:
    act(waiting)
    waiting.wait(PATIENCE)
    assert not waiting.waiting and not nothing_shown(waiting)


def test_a_long_run_aside_says_how_far_it_has_come(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradacc_lessons.ui.explorer.SECONDS_OF_SILENCE", 0.02)
    explorer = build(Experiment(pause=0.02), prediction=asked)
    explorer._ipython_display_()
    said: list[str] = []
    before = explorer._state.value
    explorer._state.observe(lambda change: said.append(change["new"]), "value")
    explorer.measure(size=3)
    assert any("A run aside: 4 of 5." in words for words in said)
    assert explorer._state.value == before


def test_numbers_and_static_twin_come_from_a_run_aside_while_it_waits(waiting: Explorer, asked: Asked) -> None:
    assert list(waiting.data["value"]) == [0, 2, 4, 6, 8]
    assert list(waiting.measure(size=3)["value"]) == [0, 3, 6, 9, 12]
    assert waiting.static().sentence == "5 rows, the last is 8"
    assert waiting.waiting and nothing_shown(waiting) and waiting.values["size"] == 2
    with pytest.raises(ValueError, match="whole number from 1 to 10"):
        waiting.measure(size=11)
    asked.answer(3.0)
    waiting.wait(PATIENCE)
    assert not nothing_shown(waiting)


def test_the_twin_of_something_still_to_predict_is_folded_and_others_are_open(asked: Asked) -> None:
    explorer = build(Experiment(), prediction=asked)
    folded = explorer.static()._repr_html_()
    open_one = build(Experiment()).static()._repr_html_()
    summary = "<summary>What it looks like (open it after your prediction)</summary>"
    assert folded.endswith(f'<details class="gradacc-folded">{summary}{open_one}</details>')
    assert "<details" not in open_one and "@media print" in folded
    asked.answer(3.0)
    assert explorer.static()._repr_html_() == open_one

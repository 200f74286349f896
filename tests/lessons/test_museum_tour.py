"""Lesson 09: the pictures of the museum, its two explorers, its cards and timelines."""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gradacc_lessons.lessons import museum_hall, museum_tour
from gradacc_lessons.lessons.museum_cards import answer, symptom
from gradacc_lessons.lessons.museum_hall import (
    SMALLEST,
    STEPS,
    GlanceFigure,
    HallFigure,
    at_a_glance,
    explore_hall,
    glance,
    hall,
    hall_sentence,
    hall_table,
    shares,
)
from gradacc_lessons.lessons.museum_runs import final, numbers, own
from gradacc_lessons.lessons.museum_tour import TourFigure, explore_exhibit, in_percent, timeline, tour, tour_table
from gradacc_lessons.museum.collection import exhibit, exhibits
from gradacc_lessons.museum.exhibit import INSTRUMENTS

PATIENCE = 120.0
NAMES = list(exhibits())
TAPES = [name for name in NAMES if exhibit(name).instrument == "trace"]


# The tour ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def explorer() -> Any:
    return explore_exhibit()


def test_each_control_moves_the_run(explorer: Any) -> None:
    for values, words in (
        ({}, "nanoGPT, 2023: The loss is never divided by N. What gives it away: length of the first gradient"),
        ({"accumulation_steps": 1}, "With b = 8 and N = 1 the two runs end with the same weights."),
        ({"accumulation_steps": 2, "micro_batch_size": 4}, "With b = 4 and N = 2 the run with the bug ends"),
        ({"name": "sentence-transformers-1822"}, "the micro-batches' gradient is"),
        ({"accumulation_steps": 1}, "the micro-batches' gradient is that of the whole batch."),
        ({"name": "torchtune-1917", "accumulation_steps": 4}, "the two runs end with the same weights."),
    ):
        explorer.set(**values)
        explorer.wait(PATIENCE)
        assert words in explorer.sentence, explorer.sentence


def test_impossible_values_are_refused_in_a_sentence(explorer: Any) -> None:
    for impossible, sentence in (
        ({"micro_batch_size": 0}, "whole number from 1 to 16"),
        ({"accumulation_steps": 17}, "whole number from 1 to 16"),
        ({"name": "titanic-1"}, "must be one of"),
        ({"name": "mmcv-1869", "micro_batch_size": 16, "accumulation_steps": 16}, "16 x 16 = 256"),
    ):
        with pytest.raises(ValueError, match=sentence):
            explorer.set(**impossible)


def test_an_error_in_a_run_is_shown_and_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("closed today")

    monkeypatch.setattr(museum_tour, "differences", broken)
    failing = explore_exhibit()
    failing.start()
    with pytest.raises(RuntimeError, match="closed today"):
        failing.wait(PATIENCE)
    assert "RuntimeError: closed today" in failing._message.value


@pytest.mark.few(6)
@pytest.mark.parametrize("name", NAMES)
def test_every_exhibit_is_drawn_as_it_was_measured(name: str) -> None:
    figure, data = TourFigure(), pd.DataFrame(list(tour(name, 4, 2)))
    sentence = figure.draw(data)
    figure.png()
    own_numbers = numbers(name)
    assert list(figure._bug.get_xdata()) == [own_numbers["bug"]]
    assert list(figure._fixed.get_xdata()) == [own_numbers["fixed"]]
    np.testing.assert_array_equal(figure._got.get_ydata(), 100 * data["bug"])
    assert exhibit(name).title.en in sentence and exhibit(name).number_name.en in sentence
    assert figure._plane.get_ylim()[1] >= np.nanmax(100 * data["bug"])
    assert figure._number.get_title().replace("\n", " ") == exhibit(name).number_name.en


def test_another_exhibit_brings_other_axes() -> None:
    figure = TourFigure()
    for name, axis in (("nanogpt-168", "micro-batches run"), ("mmcv-1869", "examples in a micro-batch")):
        figure.show(pd.DataFrame(list(tour(name, 4, 2))))
        assert figure._plane.get_xlabel() == axis


def test_the_table_is_the_label_of_the_exhibit() -> None:
    table = tour_table(pd.DataFrame(list(tour("f5-tts-631", 4, 2))))
    assert list(table.columns) == ["of the exhibit", "f5-tts-631"]
    assert list(table["f5-tts-631"]) == ["4", "1", "trace", "lesson 07", exhibit("f5-tts-631").thread]


@pytest.mark.parametrize(
    ("share", "words"), [(2.711, "271 %"), (0.0312, "3.1 %"), (0.096, "10 %"), (0.0949, "9.5 %"), (1.0, "100 %")]
)
def test_shares_in_percent(share: float, words: str) -> None:
    assert in_percent(share) == words


# At a glance ------------------------------------------------------------------------------------------------------


def test_each_exhibit_is_in_one_panel_with_the_mark_of_its_instrument() -> None:
    data, figure = pd.DataFrame(list(at_a_glance())), GlanceFigure()
    figure.draw(data)
    labels = [label.get_text() for ax in (figure._multiples, figure._errors) for label in ax.get_yticklabels()]
    assert len(labels) == len(set(labels)) == len(NAMES)
    for ax, rows in ((figure._multiples, data[~data["error"]]), (figure._errors, data[data["error"]])):
        marks = [line for line in ax.lines if line.get_marker() in museum_hall.MARKERS.values()]
        bugs = [line for line in marks if line.get_markerfacecolor() in museum_hall.COLOURS.values()]
        assert [line.get_marker() for line in bugs] == [museum_hall.MARKERS[name] for name in rows["instrument"]]
        low, high = ax.get_xlim()
        assert all(low <= x <= high for line in bugs for x in line.get_xdata())


def test_a_multiple_is_the_number_over_the_fixed_one_and_an_error_is_in_percent() -> None:
    data = pd.DataFrame(list(at_a_glance())).set_index("name")
    assert not data.loc["llamafactory-7443", "error"] and data.loc["torchtitan-1733", "error"]
    figure = GlanceFigure()
    figure.draw(data.reset_index())
    place = list(data[~data["error"]].index).index("llamafactory-7443")
    xs = [line.get_xdata()[0] for line in figure._multiples.lines if list(line.get_ydata()) == [place]]
    assert sorted(xs) == pytest.approx([1.0, 16.0])
    place = list(data[data["error"]].index).index("torchtitan-1733")
    xs = [line.get_xdata()[0] for line in figure._errors.lines if list(line.get_ydata()) == [place]]
    assert sorted(xs) == pytest.approx([SMALLEST, 100 * numbers("torchtitan-1733")["bug"]])


def test_the_glance_names_them_all_and_counts_the_instruments() -> None:
    twin = glance()
    assert list(twin.table["exhibit"]) == NAMES
    counted = [sum(exhibit(name).instrument == one for name in NAMES) for one in INSTRUMENTS]
    assert twin.sentence.startswith(f"{len(NAMES)} exhibits, from ")
    assert "{} by diagnose, {} by examine, {} by trace".format(*counted) in twin.sentence


def test_half_of_the_numbers_are_off_by_several_times_as_the_page_says() -> None:
    data = pd.DataFrame(list(at_a_glance()))
    ratios = (data["with_bug"] / data["after_fix"])[~data["error"]]
    assert ratios.where(ratios >= 1, 1 / ratios).median() >= 2


# The hall ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def at_one() -> pd.DataFrame:
    return pd.DataFrame(list(hall(1, 40.0)))


def test_the_hall_runs_every_exhibit_at_every_n_and_the_chosen_one_first(at_one: pd.DataFrame) -> None:
    assert len(at_one) == len(STEPS) * len(NAMES) and set(at_one["accumulation_steps"]) == set(STEPS)
    assert list(at_one["accumulation_steps"].iloc[: len(NAMES)]) == [1] * len(NAMES)
    assert list(pd.DataFrame(list(hall(3, None)))["accumulation_steps"].unique()) == [3, *STEPS]


def test_points_stand_where_the_differences_are(at_one: pd.DataFrame) -> None:
    figure = HallFigure()
    figure.draw(at_one)
    figure.png()
    rows = at_one[at_one["accumulation_steps"] == 1].reset_index()
    drawn = dict(itertools.chain(*(zip(*line.get_data()[::-1], strict=True) for line in figure._points.values())))
    assert drawn == pytest.approx({place: 100 * row["difference"] for place, row in rows.iterrows() if row["shows"]})
    assert list(figure._same.get_ydata()) == list(rows.index[~rows["shows"]])
    np.testing.assert_allclose(figure._line.get_ydata(), shares(at_one))
    assert figure._guess_words.get_text() == "your prediction: 40 %" and list(figure._guess.get_ydata()) == [40, 40]
    assert len({line.get_marker() for line in figure._points.values()}) == len(INSTRUMENTS)


@pytest.mark.parametrize("guess", [0.0, 50.0, 95.0, 100.0])
def test_the_prediction_stays_within_the_picture(at_one: pd.DataFrame, guess: float) -> None:
    figure = HallFigure()
    figure.draw(at_one.assign(prediction=guess))
    assert -3 <= figure._guess_words.get_position()[1] <= 97


def test_it_can_be_drawn_while_it_comes_in(at_one: pd.DataFrame) -> None:
    figure = HallFigure()
    for seen in (1, 2, len(NAMES), len(NAMES) + 1, len(at_one)):
        assert figure.show(at_one.iloc[:seen]).startswith("N = ")
        figure.png()


def test_the_sentence_and_the_table_count(at_one: pd.DataFrame) -> None:
    shown = [name for name in NAMES if final(name, own(name).micro_batch_size * own(name).accumulation_steps, 1) > 1e-6]
    share = f"{100 * len(shown) / len(NAMES):.0f} %"
    sentence = hall_sentence(at_one)
    assert f"the bug shows in {len(shown)} ({', '.join(shown)}), which is {share}." in sentence
    assert sentence.endswith("You predicted 40 %, for N = 1.")
    table = hall_table(at_one)
    assert list(table["N"]) == list(STEPS) and table["share"].iloc[0] == share


def test_the_hall_waits_for_the_prediction_and_its_slider_moves_it(predicted: Any) -> None:
    waiting = explore_hall(predicted("museum-predict-n1"))
    assert waiting.waiting
    explorer = explore_hall(predicted("museum-predict-n1", 30))
    explorer.set(accumulation_steps=2)
    explorer.wait(PATIENCE)
    assert explorer.sentence.startswith("N = 2: of ") and explorer.sentence.endswith("You predicted 30 %, for N = 1.")
    with pytest.raises(ValueError, match="whole number from 1 to 8"):
        explorer.set(accumulation_steps=9)
    assert explorer._bar.value == explorer._bar.max == len(explorer.data)


# Cards and timelines ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_first_card_does_not_say_what_it_is_and_the_second_does(name: str) -> None:
    one = exhibit(name)
    before, after = symptom(name), answer(name)
    assert one.source("bug") in repr(before) and one.symptom.en in repr(before)
    for told in (one.title.en, one.fix.en, one.explanation.en, one.finding):
        assert told not in repr(before) and told in repr(after)
    assert after._repr_html_().startswith("<details><summary>") and "<details>" not in before._repr_html_()
    assert f'<a href="{one.thread}">' in after._repr_html_()
    assert not answer(name, folded=False).folded


def test_what_stands_on_a_card_is_escaped() -> None:
    assert "&lt;" in symptom("trl-2175")._repr_html_() or "<" not in exhibit("trl-2175").source("bug")
    page = answer("everydream2trainer-175")._repr_html_()
    assert page.count("<pre") == page.count("</pre>") == 1


@pytest.mark.parametrize("name", ["f5-tts-631", "transformers-1563"])
def test_a_timeline_shows_what_the_tape_found_and_nothing_after_the_fix(name: str) -> None:
    bug, fixed = (timeline(name, kind) for kind in ("bug", "fixed"))
    assert "with the bug" in bug.sentence and len(bug.table) == 1 and bug.table["found"].iloc[0] != "nothing"
    assert "after the fix" in fixed.sentence and list(fixed.table["found"]) == ["nothing"]
    assert bug.picture.startswith('<img alt="') and exhibit(name).project in bug.picture


def test_an_exhibit_without_a_tape_has_no_timeline() -> None:
    with pytest.raises(ValueError, match="nanogpt-168 has no tape: it is found by diagnose"):
        timeline("nanogpt-168", "bug")
    assert len(TAPES) >= 5

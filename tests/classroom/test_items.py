"""Item analysis: what the first answers say, against scipy and by hand, and its figure, page and tables."""

import csv
import io
import math

import numpy as np
import pandas as pd
import pytest
from classroom.class_room import LESSON
from classroom.graded import refused, result, self_contained
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pointbiserialr

from gradacc_lessons.classroom.class_folder import ClassFolder
from gradacc_lessons.classroom.items import COMMON, LOW, ItemAnalysis, analyse, first_answers
from gradacc_lessons.classroom.items_figure import ItemsFigure, sentence
from gradacc_lessons.classroom.items_page import drawn, in_words, items_page, misconceptions, write_items
from gradacc_lessons.course import course_folder
from gradacc_lessons.quiz.bank import load_bank
from gradacc_lessons.text import LANGUAGES


def analysis(*results) -> ItemAnalysis:
    return analyse(first_answers(results))


def of(found: ItemAnalysis, question: str) -> pd.Series:
    (row,) = (row for _, row in found.items.iterrows() if row["question"] == question)
    return row


def test_by_hand_three_learners_two_questions() -> None:
    found = analysis(
        result("a", [("q1", "choice", 1, 1.0, None), ("q2", "number", 1, 1.0, None)]),
        result("b", [("q1", "choice", 1, 1.0, None), ("q2", "number", 1, 0.0, "mistake-1")]),
        result("c", [("q1", "choice", 1, 0.0, "mean"), ("q2", "number", 1, 0.0, None)]),
    )
    q1, q2 = of(found, "q1"), of(found, "q2")
    assert (q1["n"], q1["difficulty"], q1["mistake"], q1["mistake_share"]) == (3, 2 / 3, "mean", 1 / 3)
    assert q1["discrimination"] == pytest.approx(0.5)  # (1, 1, 0) with the rest (1, 0, 0)
    assert (q2["difficulty"], q2["mistake"], q2["kind"]) == (1 / 3, "mistake-1", "number")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=4, max_size=30))
def test_discrimination_is_the_point_biserial_correlation_with_the_rest(answers: list[list[bool]]) -> None:
    results = [
        result(f"s{number}", [(f"q{at}", "choice", 1, float(right), None) for at, right in enumerate(row)])
        for number, row in enumerate(answers)
    ]
    found, table = analysis(*results), np.array(answers, float)
    for at in range(4):
        rest = table.sum(axis=1) - table[:, at]
        value = of(found, f"q{at}")["discrimination"]
        if np.ptp(table[:, at]) == 0 or np.ptp(rest) == 0:
            assert math.isnan(value)
        else:
            assert value == pytest.approx(pointbiserialr(table[:, at].astype(bool), rest).statistic)


def test_only_the_first_answer_in_the_first_take_counts() -> None:
    answers = [
        ("q1", "choice", 2, 0.0, "mean"),  # a first take that came later in the file
        ("q1", "choice", 3, 1.0, None),
        ("q1", "choice", 2, 1.0, None),
    ]
    found = analysis(result("a", answers))
    assert of(found, "q1")["difficulty"] == 0.0 and list(found.mistakes["mistake"]) == ["mean"]


def test_wrong_options_that_are_picked_together_count_each() -> None:
    found = analysis(*(result(f"s{at}", [("q", "multiple", 1, 0.0, "forward,backward")]) for at in range(4)))
    assert dict(zip(found.mistakes["mistake"], found.mistakes["share"], strict=True)) == {"backward": 1, "forward": 1}


def test_code_that_was_not_run_and_files_that_were_refused_say_nothing() -> None:
    answers = [("q1", "choice", 1, 1.0, None), ("q2", "code", 1, 0.0, None)]
    found = analysis(result("a", answers, code="refused"), refused("b", "damaged"))
    assert list(found.items["question"]) == ["q1"]
    assert list(analysis(result("a", answers, code="sandbox")).items["question"]) == ["q1", "q2"]


def test_a_mistake_of_two_learners_is_no_misconception_of_the_class() -> None:
    wrong, right = [("q", "choice", 1, 0.0, "mean")], [("q", "choice", 1, 1.0, None)]
    few = [result(f"w{at}", wrong) for at in range(2)] + [result(f"r{at}", right) for at in range(4)]
    assert analysis(*few).misconceptions().empty
    more = [*few, result("w2", wrong)]
    assert list(analysis(*more).misconceptions()["mistake"]) == ["mean"]
    diluted = [*more, *(result(f"more{at}", right) for at in range(30))]
    assert COMMON > 3 / 37 and analysis(*diluted).misconceptions().empty


def test_nothing_is_said_of_a_class_that_handed_in_nothing(autumn: ClassFolder) -> None:
    found = analysis()
    assert found.items.empty and found.misconceptions().empty
    assert sentence(found.items).en == "Nobody has answered."
    self_contained(items_page("autumn", found, in_words(autumn), "nl", drawn(found, "nl")))


def fifteen() -> pd.DataFrame:
    """The course's longest quiz, with shares from nothing to all."""
    questions = load_bank(course_folder("quizzes") / "02_scale_the_loss.yaml").counted
    right = np.linspace(0, 1, len(questions))
    return pd.DataFrame(
        {
            "lesson": "02_scale_the_loss", "question": [each.id for each in questions],
            "kind": [each.kind for each in questions], "n": 300, "difficulty": right,
            "discrimination": np.linspace(-0.3, 0.7, len(questions)), "right": right,
            "mistake": "an-option-with-a-long-name-indeed", "mistake_share": (1 - right) / 2,
        }
    )  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_figure_is_readable_with_fifteen_questions(language) -> None:
    """No text overlaps another or leaves the picture, none is smaller than 8 points, and every question has its row."""
    data, figure = fifteen(), ItemsFigure(language)
    assert len(data) >= 15
    said = figure.draw(data)
    assert figure.figure is not None and figure.png().startswith(b"\x89PNG")
    left, right = figure.figure.axes
    renderer = figure.figure.canvas.get_renderer()
    texts = [
        text for ax in (left, right)
        for text in (*ax.get_yticklabels(), *ax.get_xticklabels(), *ax.texts, ax.title, ax._left_title, ax.xaxis.label)
        if text.get_text() and text.get_visible()
    ]  # fmt: skip
    texts += list(left.get_legend().get_texts())
    boxes = [text.get_window_extent(renderer) for text in texts if ax_shows(text, right)]
    for place, box in enumerate(boxes):
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.width and box.y1 <= figure.height
        assert not any(box.overlaps(other) for other in boxes[place + 1 :])
    assert min(text.get_fontsize() for text in texts) >= 8
    assert len(left.get_yticklabels()) == len(data)
    assert "scale-" in said and str(int(data["n"].max())) in said


def ax_shows(text, right) -> bool:
    """The right panel shares the left one's rows and does not name them again."""
    return text not in right.get_yticklabels()


def test_the_figure_draws_what_the_data_says() -> None:
    data, figure = fifteen(), ItemsFigure()
    figure.draw(data)
    left, right = figure.figure.axes
    bars = [bar.get_width() for bar in left.patches]
    n = len(data)
    assert bars[:n] == pytest.approx(list(100 * data["right"]))
    assert bars[n : 2 * n] == pytest.approx(list(100 * data["mistake_share"]))
    assert [sum(bars[at::n]) for at in range(n)] == pytest.approx([100] * n)
    shown = sorted(x for line in right.lines[:2] for x in line.get_xdata())
    assert shown == pytest.approx(sorted(data["discrimination"]))
    low = right.lines[1]
    assert low.get_marker() == "X" and all(x < LOW for x in low.get_xdata())  # told by shape, not by colour alone


def hostile_analysis() -> ItemAnalysis:
    name = '<script>alert("x")</script>'
    return analysis(*(result(f"s{at}", [("small-choice", "choice", 1, 0.0, name)]) for at in range(4)))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_says_the_misconceptions_in_the_words_of_the_bank(autumn: ClassFolder, language) -> None:
    wrong = [("small-choice", "choice", 1, 0.0, "mean"), ("small-number", "number", 1, 0.0, "mistake-1")]
    found = analysis(*(result(f"s{at}", wrong) for at in range(4)))
    page = self_contained(items_page("autumn & <others>", found, in_words(autumn), language, drawn(found, language)))
    question = autumn.bank(LESSON)[0].question("small-choice")
    assert question.options[1].text.to(language) in page.words() and "b + n" in page.words()
    assert "autumn & <others>" in page.words()
    assert "b + n" in misconceptions(found, in_words(autumn), language)


def test_a_dutch_page_is_dutch_to_its_numbers_and_its_pictures_words(autumn: ClassFolder) -> None:
    answers = [("small-choice", "choice", 1, share, None) for share in (1.0, 0.0, 0.0)]
    found = analysis(*(result(f"s{at}", [answer]) for at, answer in enumerate(answers)))
    page = self_contained(items_page("herfst", found, in_words(autumn), "nl", drawn(found, "nl")))
    assert ("th", "Soort") in page.text and ("td", "keuze") in page.text
    assert "0,33" in page.words() and "onder 0,2 zegt" in page.words() and "0.33" not in page.words()
    (picture,) = page.all("img")
    assert picture["alt"].startswith("Twee vlakken met een rij voor elke vraag")


def test_markup_in_a_result_stays_text(autumn: ClassFolder) -> None:
    found = hostile_analysis()
    page = self_contained(items_page("autumn", found, in_words(autumn), "en", drawn(found, "en")))
    assert '<script>alert("x")</script>' in page.words()


def test_the_tables_are_written_as_csv_that_runs_nothing(autumn: ClassFolder, tmp_path) -> None:
    negative = [
        result(
            f"s{at}", [("small-choice", "choice", 1, at % 2, None), ("small-spot", "spot", 1, (at + 1) % 2, "line-1")]
        )
        for at in range(6)
    ]
    found = analysis(*negative, *(result(f"x{at}", [("=cmd", "choice", 1, 0.0, "@evil")]) for at in range(4)))
    files = {file.name: file for file in write_items(autumn, found, tmp_path, "en")}
    assert set(files) == {"items.html", "items.csv", "mistakes.csv", f"items-{LESSON}.png"}
    items = list(csv.DictReader(io.StringIO(files["items.csv"].read_text("utf-8-sig"))))
    assert [row["question"] for row in items] == ["small-choice", "small-spot", "'=cmd"]
    assert float(items[0]["discrimination"]) == pytest.approx(-1, abs=0.01)
    assert items[2]["discrimination"] == ""
    mistakes = list(csv.DictReader(io.StringIO(files["mistakes.csv"].read_text("utf-8-sig"))))
    assert {row["mistake"] for row in mistakes} == {"line-1", "'@evil"}
    assert all(row["in words"] for row in mistakes)


def test_every_mistake_of_every_bank_has_words() -> None:
    """What a class can get wrong is named by the bank, and not by an id alone."""
    from gradacc_lessons.classroom.answers import named_mistake
    from gradacc_lessons.classroom.simulated import wrong_answers
    from gradacc_lessons.quiz import draw
    from gradacc_lessons.quiz.questions import CodeQuestion, NumberQuestion

    for file in sorted(course_folder("quizzes").glob("*.yaml")):
        for question in load_bank(file).counted:
            if isinstance(question, CodeQuestion):
                continue
            numbers = draw.variables(question.variables, "x") if isinstance(question, NumberQuestion) else {}
            found = set(wrong_answers(question, numbers)) - {""}
            assert found, question.id
            for mistake in found:
                assert named_mistake(question, mistake).en != mistake, (question.id, mistake)

"""Things in order: what an order is worth, what is said to it, and how it is taken by keyboard and without widgets."""

from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quiz.panel import every, press, said, text_of

from gradacc_lessons.progress import Progress
from gradacc_lessons.quiz.bank import BankError, load_bank
from gradacc_lessons.quiz.check import check_banks
from gradacc_lessons.quiz.grade import Grade, grade
from gradacc_lessons.quiz.ordering import as_order, first_out_of_place, share_in_order, shuffled
from gradacc_lessons.quiz.questions import OrderQuestion
from gradacc_lessons.quiz.quiz import Quiz
from gradacc_lessons.quiz.show import as_text
from gradacc_lessons.quiz.view import QuizView
from gradacc_lessons.text import LANGUAGES

BANK = Path(__file__).parent / "banks" / "91_order.yaml"
RIGHT = ["zero_grad", "forward", "backward", "clip", "update"]
RIGHT_TOO = ["forward", "backward", "clip", "update", "zero_grad"]


@pytest.fixture(scope="module")
def window() -> OrderQuestion:
    question = load_bank(BANK).question("order-window")
    assert isinstance(question, OrderQuestion)
    return question


@pytest.fixture
def taken(progress: Progress) -> Quiz:
    return Quiz("91", bank_folder=BANK.parent, progress=progress)


# What an order is worth


def swaps(order: tuple[str, ...], right: tuple[str, ...]) -> int:
    """How many swaps of neighbours make `order` into `right`, found by sorting with them."""
    places, done = [right.index(each) for each in order], 0
    for end in range(len(places) - 1, 0, -1):
        for at in range(end):
            if places[at] > places[at + 1]:
                places[at], places[at + 1], done = places[at + 1], places[at], done + 1
    return done


@given(st.permutations("abcde"), st.lists(st.permutations("abcde"), min_size=1, max_size=4))
def test_each_swap_of_neighbours_costs_the_same_and_the_nearest_order_decides(order: Any, accepted: Any) -> None:
    order, accepted = tuple(order), [tuple(each) for each in accepted]
    nearest = min(swaps(order, right) for right in accepted)
    assert share_in_order(order, accepted) == pytest.approx(max(0, 1 - nearest * 2 / 10))
    assert (
        (share_in_order(order, accepted) == 1) == (order in accepted) == (first_out_of_place(order, accepted) is None)
    )


def test_an_order_drawn_by_lot_earns_what_it_loses() -> None:
    right = tuple("abcd")
    earned = [1 - 2 * swaps(order, right) / 6 for order in permutations(right)]
    assert sum(earned) == pytest.approx(0)
    assert share_in_order(right[::-1], [right]) == 0


def test_the_first_that_is_out_of_place_is_where_no_accepted_order_begins_like_it() -> None:
    accepted = [tuple("abcd"), tuple("bacd")]
    for order, place in (("abcd", None), ("bacd", None), ("abdc", 2), ("cabd", 0), ("bcad", 1), ("badc", 2)):
        assert first_out_of_place(tuple(order), accepted) == place


# What is said


@pytest.mark.parametrize(
    "order", [RIGHT, RIGHT_TOO, tuple(RIGHT), ", ".join(RIGHT), "zero_grad > forward>backward clip;update"]
)
def test_every_accepted_order_is_right(window: OrderQuestion, order: Any) -> None:
    assert grade(window, order) == Grade(1.0, True, window.feedback.correct)


def test_the_first_out_of_place_is_named_with_its_own_words_and_its_place_is_not_told(window: OrderQuestion) -> None:
    clipped = grade(window, ["zero_grad", "forward", "clip", "backward", "update"])
    assert (clipped.fraction, clipped.correct, clipped.mistake) == (0.8, False, "item-clip")
    assert clipped.feedback.en == (
        "The first that is out of place is number 3: clip <b>once</b>. Clip what is <u>complete</u>."
    )
    late = grade(window, ["backward", "forward", "clip", "update", "zero_grad"])
    assert late.mistake == "item-backward"
    assert late.feedback.nl == "De eerste die niet op zijn plaats staat, is nummer 1: terug. Volg .grad."
    assert "forward" not in late.feedback.en


def test_every_order_gets_one_verdict(window: OrderQuestion) -> None:
    for order in permutations(RIGHT):
        result = grade(window, order)
        assert result.counted and result.correct == (list(order) in (RIGHT, RIGHT_TOO)) == (result.mistake is None)
        assert 0 <= result.fraction < 1 or result.correct


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (RIGHT[:4], "This has no place yet: the update."),
        (["", *RIGHT[1:]], "This has no place yet: `zero_grad`."),
        ([*RIGHT[:4], "clip"], "This stands at 4 and at 5: clip <b>once</b>."),
        ([*RIGHT, "clip"], "This stands at 4 and at 6: clip <b>once</b>."),
        (["forward", "", "forward"], "This stands at 1 and at 3: Forward."),
        ([], "Pick from these"), (["", ""], "This has no place yet"), (["other"], "Pick from these"),
        ("", "Pick from these"), (None, "Pick from these"), (3, "Pick from these"), ([["clip"]], "Pick from these"),
        ({"clip": 1}, "Pick from these"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_order_of_all_costs_nothing_and_is_told(window: OrderQuestion, value: Any, says: str) -> None:
    result = grade(window, value)
    assert not result.counted and says in result.feedback.en


def test_an_answer_is_read_as_ids() -> None:
    assert as_order("a, b;c > d") == tuple("abcd") and as_order(["a", ""]) == ("a", "")
    assert as_order(3) is None and as_order([1]) is None and as_order({"a"}) is None


# The learner's own order


def test_nobody_is_given_an_accepted_order_and_each_order_can_come(window: OrderQuestion) -> None:
    given = {shuffled(window, f"seed {n}") for n in range(2_000)}
    assert not given & set(window.orders) and len(given) == 120 - 2
    lines = load_bank(BANK).question("order-lines")
    assert isinstance(lines, OrderQuestion)
    generous = lines.model_copy(update={"orders": tuple(permutations(["one", "two", "three"]))[:5]})
    assert {shuffled(generous, f"seed {n}") for n in range(100)} >= {("three", "two", "one")}


# Without widgets


def test_an_order_is_kept_as_it_was_given_and_a_retake_shuffles(taken: Quiz) -> None:
    before = [item.id for item in taken.options("order-window")]
    said_first = taken.answer("order-window", "forward, backward, update, clip, zero_grad")
    assert str(said_first).startswith("◐ Partly right: 80%. The first that is out of place is number 3: the update.")
    kept = Quiz("91", bank_folder=BANK.parent, progress=Progress(taken.progress.file)).given("order-window")
    assert kept is not None and kept.value == ["forward", "backward", "update", "clip", "zero_grad"]
    assert taken.result().points == pytest.approx(1.6) and not taken.answer("order-window", RIGHT).counts
    assert str(taken.solution("order-window")) == (
        "Solution: one right order: 1. `zero_grad`; 2. Forward; 3. backward; 4. clip <b>once</b>; 5. the update"
    )
    taken.answer("order-lines", ["one", "two", "three"])
    assert str(taken.solution("order-lines")) == "Solution: 1. one; 2. two; 3. three"
    orders = set()
    for _ in range(10):
        taken.retake()
        orders.add(tuple(item.id for item in taken.options("order-window")))
        taken.answer("order-window", RIGHT)
    assert len(orders) > 3 and {frozenset(order) for order in orders} == {frozenset(before)}


def test_it_can_be_read_as_text(taken: Quiz) -> None:
    text = as_text(taken, ["order-window"])
    for item in taken.options("order-window"):
        assert f"  {item.id}: {item.text.en}" in text


# In the notebook


def places(view: QuizView) -> list[widgets.Dropdown]:
    return [each for each in every(view._place) if isinstance(each, widgets.Dropdown)]


def test_each_place_has_a_list_that_can_be_heard(taken: Quiz) -> None:
    view = QuizView(taken, ["order-window"])
    assert [each.description for each in places(view)] == [f"Place {k} of 5:" for k in range(1, 6)]
    for each in places(view):
        assert each.value == "" and each.options[0] == ("choose one", "")
        letters = [label[:3] for label, _ in each.options[1:]]
        assert letters == ["A: ", "B: ", "C: ", "D: ", "E: "]
        assert [value for _, value in each.options[1:]] == [item.id for item in taken.options("order-window")]
        assert not any("`" in label for label, _ in each.options)
    (listing,) = [each for each in every(view._place) if isinstance(each, widgets.HTML)]
    assert "<b>once" not in listing.value and "clip <b>once</b>" in text_of(listing.value)
    assert "<code>zero_grad</code>" in listing.value


def test_an_order_is_put_together_answered_and_comes_back(taken: Quiz) -> None:
    view = QuizView(taken, ["order-window"])
    press(view, "answer")
    assert said(view) == "Give an answer first."
    for place, item in zip(places(view), ["forward", "backward", "clip", "clip", ""], strict=True):
        place.value = item
    press(view, "answer")
    assert said(view).startswith("○ Not an answer yet. This stands at 3 and at 4: clip <b>once</b>.")
    places(view)[3].value = "update"
    view._language.value = "nl"
    assert [each.value for each in places(view)] == ["forward", "backward", "clip", "update", ""]
    assert places(view)[0].description == "Plaats 1 van 5:" and places(view)[0].options[0][0] == "kies er één"
    press(view, "answer")
    assert "Dit heeft nog geen plaats: zero_grad . Geef" in said(view) and taken.given("order-window") is None
    places(view)[4].value = "zero_grad"
    press(view, "answer")
    assert said(view) == "✓ Goed. Dat is een venster."
    assert [each.value for each in places(QuizView(taken, ["order-window"]))] == RIGHT_TOO
    view._retake()
    assert [each.value for each in places(view)] == [""] * 5


# Banks


WHOLE = "questions[1].order"  # the question as a whole
EDITS = {
    "item twice": ("id: three,", "id: two,", "items have the id 'two'", WHOLE),
    "unknown in an order": ("[one, two, three]", "[one, two, four]", "one, two, four does not hold each of", WHOLE),
    "missing in an order": ("[one, two, three]", "[one, two]", "one, two does not hold each of", WHOLE),
    "twice in an order": ("[one, two, three]", "[one, two, two]", "does not hold each of", WHOLE),
    "an order twice": (
        "[[one, two, three]]", "[[one, two, three], [one, two, three]]", "stands here twice", WHOLE,
    ),
    "every order": (
        "[[one, two, three]]", str([list(each) for each in permutations(["one", "two", "three"])]).replace("'", ""),
        "nobody can be wrong", WHOLE,
    ),
    "no order": ("[[one, two, three]]", "[]", "must not be empty", "questions[1].orders"),
    "no list": ("[[one, two, three]]", "one", "must be a list", "questions[1].orders"),
    "two things": (
        "      - {id: three, text: {en: three, nl: drie}}\n", "", "must hold at least 3", "questions[1].items",
    ),
    "one language": ("text: {en: three, nl: drie}", "text: {en: three}", "missing", "questions[1].items[2].text.nl"),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_what_cannot_be_asked_is_told_with_its_line(tmp_path: Path, name: str) -> None:
    old, new, says, field = EDITS[name]
    text = BANK.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path = tmp_path / BANK.name
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(BankError) as refused:
        load_bank(path)
    assert any(f": {field}: " in problem and says in problem for problem in refused.value.problems), refused.value


LEAKS: dict[str, Callable[[str], str]] = {
    "in English": lambda text: text.replace("{en: Count., nl: Tel.}", '{en: "Is it one, two, three?", nl: Tel.}'),
    "in Dutch": lambda text: text.replace("{en: Count., nl: Tel.}", '{en: Count., nl: "Is het één, twee, drie?"}'),
}


@pytest.mark.parametrize("name", LEAKS)
def test_an_order_that_stands_in_the_prompt_is_found(tmp_path: Path, name: str) -> None:
    path = tmp_path / BANK.name
    path.write_text(LEAKS[name](BANK.read_text(encoding="utf-8")), encoding="utf-8")
    (problem,) = check_banks(tmp_path)
    assert "questions[1].prompt: it names all items in an accepted order" in problem
    path.write_text(BANK.read_text(encoding="utf-8").replace("{en: Count.", '{en: "Is it three, two, one?"'))
    assert check_banks(tmp_path) == []


def test_all_texts_are_in_both_languages(taken: Quiz) -> None:
    for language in LANGUAGES:
        taken.language = language
        text = as_text(taken, ["order-window", "order-lines"])
        assert all(item.text.to(language) in text for item in taken.options("order-window"))

"""Progress as a text: what comes back, what a merge may change, and that no changed text is ever taken for another."""

import base64
import json
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradacc_lessons.canonical import canonical
from gradacc_lessons.progress import Prediction, Progress
from gradacc_lessons.progress_exchange import MAX_TEXT, TABLES, TextRefused, _checksum, from_text
from gradacc_lessons.text import LANGUAGES

LESSONS = ("01_accumulate", "02_scale_the_loss")
ASKED = {"a": 1.0, "b": 2.0, "c": 1.0}
Make = Callable[[], Progress]


@pytest.fixture
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Another machine."""
    return lambda: Progress(tmp_path_factory.mktemp("home") / "progress.sqlite")


def add(progress: Progress, lesson: str, take: int, question: str, fraction: float) -> bool:
    progress.begin_take(lesson, take, ASKED)
    return progress.add_answer(lesson, question, take, f"{question}!", fraction, ASKED[question])


def full(make: Make) -> Progress:
    progress = make()
    progress.set("language", "nl")
    for lesson in LESSONS:
        for question, fraction in (("a", 1.0), ("b", 0.5), ("a", 0.0)):
            add(progress, lesson, 1, question, fraction)
    progress.join("class-code")
    progress.begin_take(LESSONS[0], 2, ASKED)
    progress.add_answer(LESSONS[0], "c", 2, "def f():\n    return 'é€😀'\n", 0.0, 1.0, retry=True)
    progress.add_prediction(LESSONS[0], "p", Prediction(47.0, 48.5, 0.0))
    progress.add_prediction(LESSONS[0], "q", Prediction("peak"))
    progress.add_review(LESSONS[0], "b", 1, ["x", "y"], 0.25)
    return progress


def everything(progress: Progress) -> Any:
    return (
        [(progress.answers(lesson), progress.takes(lesson), progress.reviews(lesson)) for lesson in LESSONS],
        [progress.prediction(LESSONS[0], question) for question in "pq"],
        (progress.language, progress.class_code, progress.seed()),
    )


def shares(progress: Progress) -> dict[tuple[str, int], float]:
    return {(lesson, take.number): take.share for lesson in LESSONS for take in progress.takes(lesson)}


def test_on_a_new_machine_everything_is_as_it_was(make: Make) -> None:
    old, new = full(make), make()
    text = old.export_text()
    taken = new.import_text(text)
    assert everything(new) == everything(old) and new.export_text() == text
    assert (taken.answers, taken.takes) == (7, 3)
    assert taken.sentence.en == "Taken over. New answers: 7; takes that are new or better now: 3."
    again = new.import_text(text)
    assert everything(new) == everything(old) and again.sentence.nl == "Er staat niets in dat hier nieuw is."


def test_the_text_is_short_and_survives_being_copied_about(make: Make) -> None:
    progress = full(make)
    text = progress.export_text()
    assert len(text) < 1_500 and max(map(len, text.splitlines())) == 100
    for changed in (
        text.replace("\n", "\r\n"),
        text.replace("\n", " "),
        f"  \n{text}\n",
    ):
        new = make()
        new.import_text(changed)
        assert everything(new) == everything(progress)


def test_a_lesson_more_takes_half_a_kilobyte_at_most(make: Make) -> None:
    progress = make()
    asked = {f"question-{n}": 1.0 for n in range(10)}
    for n in range(4):
        progress.begin_take(f"{n:02}_lesson", 1, asked)
        for question in asked:
            progress.add_answer(f"{n:02}_lesson", question, 1, f"option-{n}", 1.0, 1.0)
    assert len(progress.export_text()) < 4 * 500


def test_numbers_stay_those_of_the_take_and_a_class_is_joined_here_too(make: Make) -> None:
    old, new = full(make), make()
    own = new.seed()
    new.import_text(old.export_text())
    assert new.seed(LESSONS[0], 1) == old.seed(LESSONS[0], 1) != own
    assert new.seed(LESSONS[0], 2) == new.seed() == "class-code"


# Merging


ANSWERS = st.lists(
    st.tuples(
        st.sampled_from(LESSONS),
        st.sampled_from([1, 2]),
        st.sampled_from(sorted(ASKED)),
        st.sampled_from([0.0, 0.5, 1.0]),
    ),
    max_size=8,
)


@settings(deadline=None, max_examples=5)  # each answer waits for the disk
@given(before=ANSWERS, mine=ANSWERS, theirs=ANSWERS, same_class=st.booleans())
def test_no_take_gets_worse_nothing_is_lost_and_twice_is_once(
    tmp_path_factory: pytest.TempPathFactory, before: Any, mine: Any, theirs: Any, same_class: bool
) -> None:
    merge(tmp_path_factory, before, mine, theirs, same_class)


@pytest.mark.long
@settings(deadline=None, max_examples=300)
@given(before=ANSWERS, mine=ANSWERS, theirs=ANSWERS, same_class=st.booleans())
def test_whatever_was_done_on_two_machines_no_take_gets_worse(
    tmp_path_factory: pytest.TempPathFactory, before: Any, mine: Any, theirs: Any, same_class: bool
) -> None:
    merge(tmp_path_factory, before, mine, theirs, same_class)


def merge(tmp_path_factory: pytest.TempPathFactory, before: Any, mine: Any, theirs: Any, same_class: bool) -> None:
    here, there = (Progress(tmp_path_factory.mktemp("home") / "progress.sqlite") for _ in range(2))
    if same_class:  # the same numbers on both machines
        here.join("class-code")
        there.join("class-code")
    for each in before:
        add(here, *each)
    there.import_text(here.export_text())
    for progress, answers in ((here, mine), (there, theirs)):
        for each in answers:
            add(progress, *each)
    was, text = [shares(here), shares(there)], there.export_text()
    kept = [[(a.question, a.take, a.at) for a in p.answers(lesson)] for p in (here, there) for lesson in LESSONS]
    here.import_text(text)
    after = shares(here)
    assert set(after) == set(was[0]) | set(was[1])
    for take, share in after.items():
        assert share >= max(was[0].get(take, 0.0), was[1].get(take, 0.0))
    now = [(a.question, a.take, a.at) for lesson in LESSONS for a in here.answers(lesson)]
    assert set(now) == {each for answers in kept for each in answers}
    assert not here.import_text(text).takes and shares(here) == after
    there.import_text(here.export_text())
    assert shares(there) == after


def test_of_two_takes_with_different_numbers_the_better_one_counts_alone(make: Make) -> None:
    here, there = make(), make()
    add(here, LESSONS[0], 1, "a", 1.0)
    add(there, LESSONS[0], 1, "b", 1.0)
    here.import_text(there.export_text())
    (take,) = here.takes(LESSONS[0])
    assert (take.seed, set(take.best), take.points) == (there.seed(), {"b"}, 2.0)
    assert [(answer.question, answer.counts) for answer in here.answers(LESSONS[0])] == [("a", False), ("b", True)]
    before = here.export_text()
    worse = make()
    add(worse, LESSONS[0], 1, "c", 1.0)
    here.import_text(worse.export_text())
    assert [take.points for take in here.takes(LESSONS[0])] == [2.0] and here.export_text() != before


def test_a_take_that_went_on_elsewhere_counts_again_when_it_comes_back_better(make: Make) -> None:
    here, there = make(), make()
    add(here, LESSONS[0], 1, "a", 1.0)
    elsewhere = make()
    elsewhere.import_text(here.export_text())
    add(there, LESSONS[0], 1, "b", 1.0)
    here.import_text(there.export_text())  # better by now, with other numbers
    for question in "bc":
        add(elsewhere, LESSONS[0], 1, question, 1.0)
    here.import_text(elsewhere.export_text())
    assert [take.share for take in here.takes(LESSONS[0])] == [1.0]


def test_of_two_predictions_the_measured_one_stays(make: Make) -> None:
    here, there = make(), make()
    for question, mine, theirs, stays in (
        ("p", Prediction(1.0), Prediction(2.0), 1.0),
        ("q", Prediction(1.0), Prediction(2.0, 3.0, 0.0), 2.0),
        ("r", Prediction(1.0, 3.0, 0.0), Prediction(3.0, 3.0, 1.0), 1.0),
        ("s", None, Prediction(2.0), 2.0),
    ):
        for progress, prediction in ((here, mine), (there, theirs)):
            if prediction:
                progress.add_prediction(LESSONS[0], question, prediction)
        here.import_text(there.export_text())
        kept = here.prediction(LESSONS[0], question)
        assert kept is not None and kept.value == stays


# Texts that are not as they were


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> str:
    return full(lambda: Progress(tmp_path_factory.mktemp("home") / "progress.sqlite")).export_text()


def refused(text: str) -> str:
    begun = process_time()
    with pytest.raises(TextRefused) as error:
        from_text(text)
    assert process_time() - begun < 2 and all(error.value.sentence.to(language) for language in LANGUAGES)
    return str(error.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: "", "no exported progress"),
        (lambda text: "hello", "no exported progress"),
        (lambda text: text[5:], "no exported progress"),
        (lambda text: "$ gradacc progress export\n" + text, "no exported progress"),
        (lambda text: text.replace("progress-1", "progress-2"), "newer version"),
        (lambda text: text.replace("progress-1", "progress-²"), "no exported progress"),
        (lambda text: text[:-2], "incomplete or was changed"),
        (lambda text: text[:60], "incomplete or was changed"),
        (lambda text: text + text, "incomplete or was changed"),
        (lambda text: text + "A" * MAX_TEXT, "incomplete or was changed"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_text_is_said(exported: str, change: Callable[[str], str], says: str) -> None:
    assert says in refused(change(exported))


def mutated(text: str, chance: random.Random) -> str:
    at, other = chance.randrange(len(text)), chance.randrange(len(text))
    letter = chance.choice("ABCXYZabcxyz0189-_=.,\n \x00é>")
    before, after = text[:at], text[at + 1 :]
    return chance.choice(
        [
            before + letter + after, before + letter + text[at:], before + after, before, before + text[other:],
            before + text[at:].swapcase(), before + text[at : at + 2][::-1] + text[at + 2 :], text[at:] + before,
        ]
    )  # fmt: skip


def mutate(text: str, times: int) -> None:
    """A text that is changed in any way is refused in a sentence, or is the same text still (a space, no change)."""
    chance, same = random.Random(0), 0
    for _ in range(times):
        changed = mutated(text, chance)
        if "".join(changed.split()) == "".join(text.split()):
            same += 1
            from_text(changed).close()
        else:
            refused(changed)
    assert same < times / 4


def test_a_hundred_changed_texts_are_refused(exported: str) -> None:
    mutate(exported, 100)


@pytest.mark.long
def test_ten_thousand_changed_texts_are_refused(exported: str) -> None:
    mutate(exported, 10_000)


def forged(change: Callable[[Any], Any], text: str, raw: bytes | None = None) -> str:
    """A text whose checksum is right, and whose content is not what the course writes."""
    packed = text.replace("\n", "").split(".")[2]
    held = json.loads(zlib.decompress(base64.urlsafe_b64decode(packed)))
    new = base64.urlsafe_b64encode(zlib.compress(raw if raw is not None else canonical(change(held)))).decode()
    return f"gradacc-progress-1.{_checksum(new)}.{new}"


def in_row(table: str, column: str, value: Any) -> Callable[[Any], Any]:
    def change(held: Any) -> Any:
        held[table][0][TABLES[table].index(column)] = value
        return held

    return change


FORGERIES: dict[str, Callable[[Any], Any]] = {
    "a list": lambda held: [],
    "nothing": lambda held: None,
    "no table": lambda held: {name: rows for name, rows in held.items() if name != "takes"},
    "a table of text": lambda held: {**held, "answers": "abc"},
    "rows of numbers": lambda held: {**held, "answers": [1, 2]},
    "short rows": lambda held: {**held, "answers": [["a", "b"]]},
    "a take twice": lambda held: {**held, "takes": [held["takes"][0], held["takes"][0]]},
    "a share of 7": in_row("answers", "fraction", 7),
    "a share of text": in_row("answers", "fraction", "all"),
    "no day": in_row("answers", "at", "yesterday"),
    "a list for a question": in_row("answers", "question", ["a"]),
    "no question": in_row("answers", "question", None),
    "endless points": in_row("takes", "points", 10**400),
    "take 0": in_row("takes", "take", 0),
    "asked a list": in_row("takes", "asked", [1]),
    "a number for a seed": in_row("takes", "seed", [3]),
    "measured a mapping": in_row("predictions", "measured", {}),
    "a round of text": in_row("reviews", "round", "first"),
    "a setting of nothing": in_row("settings", "value", None),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_what_the_course_never_writes_is_not_taken_over(make: Make, exported: str, name: str) -> None:
    text = forged(FORGERIES[name], exported)
    assert "never writes" in refused(text)
    here = make()
    add(here, LESSONS[0], 1, "a", 1.0)
    was = everything(here)
    with pytest.raises(TextRefused):
        here.import_text(text)
    assert everything(here) == was


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[" * 100_000, b'"' * 100_000, b"\xff", b" " * 33_000_000], ids=lambda r: repr(r[:3])
)
def test_no_text_inside_and_no_bomb_harms(exported: str, raw: bytes) -> None:
    assert "never writes" in refused(forged(lambda held: held, exported, raw))


@pytest.mark.parametrize("table", ["predictions", "reviews", "takes"])
def test_a_short_text_that_unpacks_to_a_thousand_of_a_kind_is_taken_over_at_once(
    make: Make, exported: str, table: str
) -> None:
    def a_thousand(held: Any) -> Any:
        first, last = TABLES[table][:2], held[table][0]
        named = [number if first[1] == "take" else f"question-{number}" for number in range(1, 1_001)]
        return {**held, table: [[f"{number:03}_lesson", name, *last[2:]] for number, name in enumerate(named)]}

    text, here = forged(a_thousand, exported), make()
    begun = process_time()
    here.import_text(text)
    assert len(text) < 9_000 and process_time() - begun < 1


def test_what_is_kept_in_memory_only_can_still_be_exported(make: Make, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    stuck = Progress(tmp_path / "file" / "progress.sqlite")
    add(stuck, LESSONS[0], 1, "a", 1.0)
    new = make()
    new.import_text(stuck.export_text())
    assert new.takes(LESSONS[0]) == stuck.takes(LESSONS[0])
    old = full(make)
    stuck.import_text(old.export_text())
    assert stuck.takes(LESSONS[1]) == old.takes(LESSONS[1]) and not stuck.saves

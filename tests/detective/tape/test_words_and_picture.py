"""What is told and drawn: in both languages, for every finding and question, and as it was."""

import re
from string import Formatter

import pytest
from detective.tape import right_loops, wrong_loops
from detective.tape.bench import N, batches, cuts, net, taped
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from torch import optim
from torch.nn import functional as F

from gradacc_lessons import trace
from gradacc_lessons.course import course_folder
from gradacc_lessons.detective.faults import FAULTS
from gradacc_lessons.detective.tape.events import KINDS
from gradacc_lessons.detective.tape.picture import LANE_ORDER, MOST, STYLE
from gradacc_lessons.detective.tape.said import OWN, SAID
from gradacc_lessons.detective.tape.wording import LANES, PICTURE, QUESTIONS, REPORT
from gradacc_lessons.palette import BLUE, GREEN, WRONG
from gradacc_lessons.text import Text


def _fields(words: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(words) if name}


@pytest.mark.parametrize("table", [SAID, QUESTIONS, REPORT, PICTURE, LANES])
def test_both_languages_say_the_same_numbers(table: dict[str, Text]) -> None:
    for name, text in table.items():
        assert _fields(text.en) == _fields(text.nl), name
        assert text.en.strip() and text.nl.strip()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", wrong_loops.WRONG)
def test_a_finding_has_its_numbers_and_a_lesson(name: str) -> None:
    (finding,) = wrong_loops.WRONG[name]().findings
    for language in ("en", "nl"):
        said = finding.said.to(language)  # type: ignore[arg-type]
        assert said.endswith(".") and not re.search(r"[{}]|None|nan", said)
    assert re.fullmatch(r"\d\d_\w+", finding.lesson)
    assert str(finding) == f"{finding.title.en}. {finding.said.en}"


def test_lessons_that_exist_are_named_as_they_are() -> None:
    there = {path.stem[:2]: path.stem for path in course_folder("notebooks").glob("*.ipynb")}
    for lesson in {lesson for _, lesson in OWN.values()} | {fault.lesson for fault in FAULTS.values()}:
        assert there.get(lesson[:2], lesson) == lesson


@pytest.mark.filterwarnings("ignore")
def test_the_report_of_a_wrong_loop() -> None:
    tape = wrong_loops.tail_underscaled()
    assert str(tape) == (
        "20 micro-batches, 6 updates. Micro-batches per update: 4, 4, 2, 4, 4, 2.\n"
        "Found:\n"
        "- The short last window is divided by N. Update 3 applies 2 micro-batches, and each of their losses was "
        "divided by 4: it is 2/4 of what it should be. (lesson 04_uneven_windows)"
    )
    assert tape.sentence == f"{str(tape).splitlines()[0]} The short last window is divided by N."
    dutch = tape.report("nl")
    assert "Gevonden:" in dutch and "(les 04_uneven_windows)" in dutch
    with trace(net(), language="nl") as empty:
        pass
    assert str(empty).startswith("0 micro-batches, 0 updates. Micro-batches per update: geen.\nOm meer te weten:")


def test_what_is_not_given_is_asked_for() -> None:
    model = net()
    optimizer, data = optim.SGD(model.parameters(), 0.1), batches()
    with trace(model) as tape:
        for i, batch in enumerate(data):
            (F.cross_entropy(model(batch[0]), batch[1]) / N).backward()
            if (i + 1) % N == 0:
                optimizer.step()
                optimizer.zero_grad()
    assert tape.findings == []
    asked = [question.en for question in tape.questions]
    assert [question.split("?")[0] for question in asked] == [
        "How many micro-batches should a window have", "Where does an epoch end",
    ]  # fmt: skip
    assert "They have 4, 4." in asked[0] and "2 micro-batch(es) have no update" in asked[1]


def test_a_tail_whose_scale_cannot_be_seen_is_asked_about_and_one_that_can_is_not() -> None:
    (question,) = right_loops.by_hand().questions
    assert question.en.startswith("By what were the losses of the short window of update 3 divided?")
    assert right_loops.returns_its_loss().questions == []


@pytest.mark.parametrize("told", [True, False])
def test_losses_that_nobody_divides_are_asked_about_unless_the_model_knows_the_items(told: bool) -> None:
    model = net()
    forward, items = model.forward, {"num_items_in_batch": 8} if told else {}
    model.forward = lambda x, labels, num_items_in_batch=None: forward(x, labels)  # type: ignore[method-assign]
    optimizer = optim.SGD(model.parameters(), 0.1)
    with taped(model) as tape:
        for x, labels in batches(N):
            model(x, labels=labels, **items)["loss"].backward()
        optimizer.step()
    asked = any(question.en.startswith("Did the model divide its losses") for question in tape.questions)
    assert asked is not told and tape.findings == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hand_made", "The loop puts gradients into .grad itself"),
        ("nothing", "No backward reached the parameters"),
        ("no_update", "No torch optimizer with this model's parameters has updated"),
        ("by_hand", "The parameters are written without a torch optimizer"),
        ("before", "There were gradients when the tape began"),
    ],
)
def test_what_a_tape_cannot_follow_it_says(name: str, said: str) -> None:
    model, (x, labels) = net(), batches()[0]
    optimizer = optim.SGD(model.parameters(), 0.1)
    if name == "before":
        F.cross_entropy(model(x), labels).backward()
    with taped(model) as tape:
        loss = F.cross_entropy(model(x), labels)
        if name == "hand_made":
            loss.backward()
            for parameter in model.parameters():
                assert parameter.grad is not None
                parameter.grad = parameter.grad + 1
            optimizer.step()
        elif name in ("no_update", "by_hand", "before"):
            loss.backward()
        if name == "by_hand":
            for parameter in model.parameters():
                parameter.data = parameter.detach() * 0.9
                parameter.requires_grad_().detach().mul_(0.9)
    assert tape.findings == []
    assert any(question.en.startswith(said) for question in tape.questions)


def test_every_kind_of_event_can_be_drawn() -> None:
    assert set(LANE_ORDER) == set(KINDS) == set(LANES)
    assert set(STYLE) == set(KINDS) - {"forward", "backward"}
    styles = list(STYLE.values())
    assert len({marker for _, marker in styles}) == len(styles)


def test_the_picture_shows_what_happened() -> None:
    figure = right_loops.clipped_and_scheduled().figure()
    (ax,) = figure.axes
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "forward", "backward", "clip", "update", "schedule", "zero_grad",
    ]  # fmt: skip
    bars = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    forward = [bar for bar in bars if to_hex(bar.get_facecolor()).upper() == BLUE]
    assert len(forward) == len([bar for bar in bars if to_hex(bar.get_facecolor()).upper() == GREEN]) == 20
    points = {line.get_marker(): [int(x) for x in line.get_xdata()] for line in ax.lines}
    assert points["^"] == points["d"] == points["o"] == points[">"] == [4, 8, 10, 14, 18, 20]
    labels = [text.get_text() for text in ax.texts]
    assert labels == ["update 1 applies 4", "update 2 applies 4", "2", "update 4 applies 4", "update 5 applies 4", "2"]
    figure.canvas.draw()


def test_above_a_window_without_an_update_stands_that_nothing_is_applied() -> None:
    figure = wrong_loops.tail_dropped().figure()
    assert [text.get_text() for text in figure.axes[0].texts][-1] == "0"


def test_bars_are_as_long_as_the_micro_batches_have_items() -> None:
    model, sizes = net(), [1, 2, 4, 3]
    optimizer = optim.SGD(model.parameters(), 0.1)
    with taped(model) as tape:
        for size in sizes:
            x, labels = batches(1, size)[0]
            F.cross_entropy(model(x), labels, reduction="sum").backward()
        optimizer.step()
    bars = [patch for patch in tape.figure().axes[0].patches if to_hex(patch.get_facecolor()).upper() == BLUE]
    assert [bar.get_width() / bars[2].get_width() for bar in bars] == pytest.approx([0.25, 0.5, 1.0, 0.75])  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore")
def test_what_is_wrong_is_hatched_and_what_is_lost_is_hollow() -> None:
    figure = wrong_loops.tail_dropped().figure("nl")
    (ax,) = figure.axes
    hatched = [patch for patch in ax.patches if patch.get_hatch()]
    assert hatched and {to_hex(patch.get_edgecolor()).upper() for patch in hatched} == {WRONG}
    hollow = [patch for patch in ax.patches if patch.get_linestyle() == ":"]
    assert sorted(round(patch.get_x() + 0.42) for patch in hollow) == [9, 10, 19, 20]  # type: ignore[attr-defined]
    assert ax.get_title(loc="left") == PICTURE["title"].nl
    figure.canvas.draw()


def test_a_long_run_is_drawn_from_its_beginning() -> None:
    model = net()
    optimizer = optim.SGD(model.parameters(), 0.1)
    with taped(model, micro_batches_per_epoch=None) as tape:
        for _ in range(8):
            for batch in batches(8):
                F.cross_entropy(model(batch[0]), batch[1]).backward()
            optimizer.step()
            optimizer.zero_grad()
    (ax,) = tape.figure().axes
    assert ax.get_xlim()[1] == MOST + 0.5
    assert ax.get_title(loc="left") == f"What the loop does: the first {MOST} of 64 micro-batches"
    with taped(net()) as empty:
        pass
    empty.figure().canvas.draw()
    assert sum(last for _, _, last in cuts()) == 3

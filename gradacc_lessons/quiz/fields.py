"""What a learner answers with: one labelled control per kind of question. Core widgets only, ipywidgets 7.7.1 and 8."""

from collections.abc import Callable
from html import escape
from string import ascii_uppercase
from typing import Any

import ipywidgets as widgets

from gradacc_lessons.detective import client
from gradacc_lessons.quiz import words
from gradacc_lessons.quiz.enter import Enter
from gradacc_lessons.quiz.exercises import exercise
from gradacc_lessons.quiz.feedback import html
from gradacc_lessons.quiz.grade import fill
from gradacc_lessons.quiz.ordering import NOTHING
from gradacc_lessons.quiz.questions import (
    ChoiceQuestion,
    CodeQuestion,
    MultipleQuestion,
    NumberQuestion,
    OrderQuestion,
    PredictQuestion,
    Question,
    SpotQuestion,
)
from gradacc_lessons.quiz.quiz import Quiz
from gradacc_lessons.text import Language

NO_BREAK_SPACE = "\u00a0"
NO_LINE = 0
"""Where a line is to be chosen, the entry that stands for none: lines count from 1."""


def _full() -> widgets.Layout:
    return widgets.Layout(width="100%", height="auto")


def plain(text: str) -> str:
    """Text for a control's own label, which takes no markup: without the signs of code."""
    return text.replace("`", "")


def described(text: str) -> dict[str, Any]:
    """The arguments that make `text` a control's description, with code set as code.

    ipywidgets 7 shows every description as HTML; 8 does if it is told to, by an argument that 7 does not know.
    """
    told = {"description_allow_html": True} if widgets.Text.class_traits().get("description_allow_html") else {}
    return {"description": html(text), **told}


class AnswerField:
    """A way to give an answer."""

    def __init__(
        self,
        widget: widgets.Widget,
        read: Callable[[], Any],
        write: Callable[[Any], None],
        enter: Enter | None = None,
    ) -> None:
        self.widget = widget
        """What is shown."""
        self.value = read
        """The answer as it stands; None if there is none yet."""
        self.set = write
        """Put an answer in."""
        self.enter = enter
        """What Enter does in it; None where Enter means something else."""


def field_for(quiz: Quiz, question: Question, language: Language) -> AnswerField:
    """The control that fits the question."""
    maker = _MAKERS[type(question)]
    if isinstance(question, PredictQuestion) and question.options:
        maker = _pick_one
    return maker(quiz, question, language)


def _pick_one(quiz: Quiz, question: Question, language: Language) -> AnswerField:
    options = [(plain(option.text.to(language)), option.id) for option in quiz.options(question.id)]
    radio = widgets.RadioButtons(options=options, value=None, layout=_full())
    box = widgets.VBox([_caption(words.PICK_ONE.to(language)), radio])
    return AnswerField(box, lambda: radio.value, lambda value: _put(radio, value))


def _pick_all(quiz: Quiz, question: Question, language: Language) -> AnswerField:
    boxes = {
        option.id: widgets.Checkbox(value=False, indent=False, layout=_full(), **described(option.text.to(language)))
        for option in quiz.options(question.id)
    }

    def write(value: Any) -> None:
        for option_id, box in boxes.items():
            box.value = option_id in (value or ())

    box = widgets.VBox([_caption(words.PICK_ALL.to(language)), *boxes.values()])
    return AnswerField(box, lambda: [key for key, each in boxes.items() if each.value] or None, write)


def _type_number(quiz: Quiz, question: Question, language: Language) -> AnswerField:
    assert isinstance(question, NumberQuestion | PredictQuestion)
    unit = question.unit
    label = fill(words.NUMBER_IN, {"unit": unit.to(language)}) if unit else words.YOUR_NUMBER
    field = widgets.Text(
        continuous_update=False,  # one message for one number: none is on its way when Enter comes
        style={"description_width": "initial"},
        layout=widgets.Layout(width="auto", max_width="420px"),
        **described(label.to(language)),
    )

    def write(value: Any) -> None:
        field.value = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

    return AnswerField(field, lambda: field.value.strip() or None, write, Enter(field))


def _put_in_order(quiz: Quiz, question: Question, language: Language) -> AnswerField:
    """A list for each place: what is where can be heard and changed at each, and nothing moves under the keyboard."""
    items = list(zip(ascii_uppercase, quiz.options(question.id), strict=False))
    lettered = "".join(f"<div>{letter}: {html(item.text.to(language))}</div>" for letter, item in items)
    listing = widgets.HTML(f"<div>{escape(words.IN_ORDER.to(language))}</div>{lettered}")
    options = [(words.CHOOSE_ITEM.to(language), NOTHING)]
    options += [(f"{letter}: {plain(item.text.to(language))}", item.id) for letter, item in items]
    places = [
        widgets.Dropdown(
            options=options,
            value=NOTHING,
            style={"description_width": "initial"},
            layout=widgets.Layout(width="auto", max_width="640px"),
            description=fill(words.PLACE_OF, {"place": place, "total": len(items)}).to(language),
        )
        for place in range(1, len(items) + 1)
    ]

    def read() -> list[str] | None:
        order = [each.value for each in places]
        return order if any(order) else None

    def write(value: Any) -> None:
        known, order = {item.id for _, item in items}, list(value or ())
        for each, item_id in zip(places, [*order, *[NOTHING] * len(places)], strict=False):
            each.value = item_id if item_id in known else NOTHING

    return AnswerField(widgets.VBox([listing, *places]), read, write)


def _pick_line(quiz: Quiz, question: Question, language: Language) -> AnswerField:
    assert isinstance(question, SpotQuestion)
    lines = question.listing()
    numbered = "".join(
        f'<span class="gradacc-line">{number:>3}  {escape(line)}</span>' for number, line in enumerate(lines, start=1)
    )
    name = escape(words.LISTING.to(language))
    listing = widgets.HTML(f'<pre role="group" aria-label="{name}">{numbered}</pre>')
    # Without an entry of its own for "none yet" a browser shows the first line as if it were chosen.
    options: list[tuple[str, int]] = [(words.CHOOSE_LINE.to(language), NO_LINE)]
    for number, line in enumerate(lines, start=1):
        if line.strip():
            indented = line.replace(" ", NO_BREAK_SPACE)  # of other spaces a list shows one
            label = fill(words.LINE_NUMBER, {"line": number, "code": indented})
            options.append((label.to(language), number))
    choice = widgets.Dropdown(
        options=options,
        value=NO_LINE,
        style={"description_width": "initial"},
        layout=widgets.Layout(width="auto", max_width="640px"),
        **described(words.FAULTY_LINE.to(language)),
    )
    return AnswerField(
        widgets.VBox([listing, choice]), lambda: choice.value or None, lambda value: _put(choice, value or NO_LINE)
    )


def _write_code(quiz: Quiz, question: Question, language: Language) -> AnswerField:
    assert isinstance(question, CodeQuestion)
    task = exercise(question.exercise)
    client.warm_up()  # while the learner reads and writes, the process that will check gets ready
    how, freely = html(words.WRITE_IN_CELL.to(language)), html(words.TRY_FREELY.to(language))
    shown = widgets.HTML(f"<div>{how}<pre>{escape(task.starter)}</pre>{freely}</div>")
    return AnswerField(shown, lambda: _from_notebook(task.function), lambda value: None)


def _from_notebook(name: str) -> Any:
    """What the learner's cells have defined under that name; None outside IPython or if there is nothing."""
    from IPython import get_ipython

    shell = get_ipython()
    return shell.user_ns.get(name) if shell is not None else None


def _put(selection: widgets.Widget, value: Any) -> None:
    selection.value = value if value in [each for _, each in selection.options] else None


def _caption(text: str) -> widgets.HTML:
    return widgets.HTML(f"<div>{escape(text)}</div>")


_MAKERS: dict[type, Callable[[Quiz, Any, Language], AnswerField]] = {
    ChoiceQuestion: _pick_one,
    MultipleQuestion: _pick_all,
    NumberQuestion: _type_number,
    PredictQuestion: _type_number,
    OrderQuestion: _put_in_order,
    SpotQuestion: _pick_line,
    CodeQuestion: _write_code,
}

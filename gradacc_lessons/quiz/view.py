"""The quiz in a notebook: one question at a time, feedback at once, in either language.

It owns widgets and nothing else: what an answer is worth is the quiz's to say, and what was answered is in the
learner's progress, so that a view can be thrown away at any time.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import ipywidgets as widgets

from gradacc_lessons.cell import supersede
from gradacc_lessons.progress import Answer
from gradacc_lessons.quiz import words
from gradacc_lessons.quiz.box import STYLE, QuizBox, close
from gradacc_lessons.quiz.checks import PANELS, Checks, went_wrong
from gradacc_lessons.quiz.exercises import exercise
from gradacc_lessons.quiz.feedback import Feedback, Note, html
from gradacc_lessons.quiz.fields import AnswerField, field_for
from gradacc_lessons.quiz.grade import fill
from gradacc_lessons.quiz.questions import ChoiceQuestion, CodeQuestion, PredictQuestion, Question
from gradacc_lessons.quiz.quiz import Quiz
from gradacc_lessons.text import Text
from gradacc_lessons.ui.controls import STYLE as CONTROLS_STYLE
from gradacc_lessons.ui.controls import stylesheet

LANGUAGE_NAMES = [("English", "en"), ("Nederlands", "nl")]
LANGUAGE_LABEL = "Language / Taal"


class QuizView:
    """Shows some of a quiz's questions, and its result after the last if there are several."""

    def __init__(self, quiz: Quiz, question_ids: Sequence[str]) -> None:
        self.quiz = quiz
        self.ids = list(question_ids)
        self._checks = Checks(quiz, self._checked)
        self._field: AnswerField | None = None
        self._said: Note | None = None
        self._hints: list[Note] = []
        self._build()
        self.index = self._where_stopped()
        self._draw()
        # What this cell showed before is on the page no longer, and has nothing to follow.
        supersede(("quiz", quiz.lesson, tuple(self.ids)), quiz.progress.on_change(self._guard(self._follow)))

    @property
    def question(self) -> Question | None:
        """The question that is shown; None on the page with the result."""
        return self.quiz.bank.question(self.ids[self.index]) if self.index < len(self.ids) else None

    def go(self, index: int) -> None:
        """Show a question, from 0; the number of questions shows the result."""
        with PANELS:
            self.index = max(0, min(index, len(self.ids) - (len(self.ids) == 1)))
            self._said, self._hints = self._checks.said(self.question), []
            self._draw()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until no function is being checked; TimeoutError after `timeout` seconds."""
        self._checks.wait(timeout)

    def _build(self) -> None:
        self._head, self._ask, self._notes, self._status = (widgets.HTML() for _ in range(4))
        self._head.add_class("gradacc-head")
        self._place = widgets.VBox()
        style = {"button_width": "auto", "description_width": "initial"}
        # Its label names both languages and never changes: a change would draw its buttons anew and lose the focus.
        self._language = widgets.ToggleButtons(
            options=LANGUAGE_NAMES, value=self.quiz.language, description=LANGUAGE_LABEL, style=style
        )
        self._language.observe(self._guard(self._change_language), names="value")
        acts, moves = self._build_buttons()
        asked = [self._language, self._head, self._ask, self._place]
        self.box = QuizBox([stylesheet(STYLE + CONTROLS_STYLE), *asked, acts, self._notes, self._status, moves])
        self.box.add_class("gradacc-quiz")
        several = f"{len(self.ids)} questions" if len(self.ids) > 1 else "one question"
        self.box.stands_for = f"Quiz {self.quiz.lesson}: {several}. Run this cell to take it."

    def _build_buttons(self) -> tuple[widgets.Widget, widgets.Widget]:
        """Two rows: what is done with a question, and where to go."""
        actions = {
            "answer": self._answer, "hint": self._hint, "solution": self._solution,
            "previous": lambda: self.go(self.index - 1), "next": lambda: self.go(self.index + 1),
            "retake": self._retake,
        }  # fmt: skip
        self.buttons = {name: widgets.Button() for name in actions}
        for name, action in actions.items():
            self.buttons[name].on_click(self._guard(action))
        buttons = list(self.buttons.values())
        wrap = widgets.Layout(flex_flow="row wrap")
        return widgets.HBox(buttons[:3], layout=wrap), widgets.HBox(buttons[3:], layout=wrap)

    def _draw(self) -> None:
        """Everything anew, for the question and the language as they stand; what was put in stays."""
        language, question = self.quiz.language, self.question
        self._drawn = language, self.quiz.drawn
        self._head.value = self._in_language(self._heading())
        labels = {
            "hint": words.ASK_HINT, "solution": words.ASK_SOLUTION, "previous": words.PREVIOUS,
            "next": words.TO_RESULT if self.index == len(self.ids) - 1 else words.NEXT, "retake": words.RETAKE,
        }  # fmt: skip
        for name, label in labels.items():
            self.buttons[name].description = label.to(language)
        if question is None:
            note = words.RETAKE_NOTE.to(language) if self.quiz.may_retake else ""
            self._ask.value = self._in_language(html(note))
            self._place.children = ()
        else:
            listing = question.code if isinstance(question, ChoiceQuestion) else None
            shown = f"<pre>{escape(listing.rstrip())}</pre>" if listing else ""
            self._ask.value = self._in_language(html(self.quiz.prompt(question.id).to(language)) + shown)
            self._draw_field(question)
        self._draw_words()
        self._show_buttons(question)

    def _draw_field(self, question: Question) -> None:
        kept = self._given(question)
        field = self._field = field_for(self.quiz, question, self.quiz.language)
        field.set(kept)
        if field.enter is not None:
            field.enter.act = self._guard(lambda: self._answer() if self._field is field else None)
        old = self._place.children
        self._place.children = (field.widget,)
        for widget in old:
            close(widget)
        label = words.PREDICT if isinstance(question, PredictQuestion) else words.ANSWER
        if isinstance(question, CodeQuestion):
            label = fill(words.CHECK, {"name": exercise(question.exercise).function})
        self.buttons["answer"].description = label.to(self.quiz.language)
        self.buttons["answer"].layout.width = "auto" if isinstance(question, CodeQuestion) else None

    def _draw_words(self) -> None:
        language = self.quiz.language
        notes = [replace(note, language=language)._repr_html_() for note in self._hints]
        self._notes.value = "".join(f'<div class="gradacc-said">{note}</div>' for note in notes)
        said = self._to_say()
        shown = replace(said, language=language)._repr_html_() if said else ""
        told = said.message.en if said else ""  # an answer brings the news with it
        news = [notice for notice in self.quiz.progress.notices if notice.en not in told]
        notices = "".join(f"<div>{html(notice.to(language))}</div>" for notice in news)
        self._status.value = f'<div role="status" class="gradacc-said" lang="{language}">{shown}{notices}</div>'

    def _to_say(self) -> Note | None:
        """On the last page the result; of a prediction that was measured, what came of it; else the latest news."""
        if self.question is None:
            return self.quiz.result()
        outcome = self.quiz.outcome(self.question.id) if isinstance(self.question, PredictQuestion) else None
        return outcome or self._said

    def _show_buttons(self, question: Question | None) -> None:
        alone = len(self.ids) == 1
        shown = {
            "answer": question is not None and not self._measured(question),
            "hint": question is not None and self.quiz.has_hint(question.id),
            "solution": question is not None and self.quiz.may_see_solution(question.id),
            "previous": self.index > 0,
            "next": not alone and question is not None,
            "retake": question is None and self.quiz.may_retake,
        }
        for name, here in shown.items():
            self.buttons[name].layout.display = None if here else "none"

    def _measured(self, question: Question) -> bool:
        return isinstance(question, PredictQuestion) and self.quiz.outcome(question.id) is not None

    def _heading(self) -> Text:
        if self.question is None:
            return self.quiz.bank.title
        state = self.quiz.state(self.question.id)
        number = fill(words.QUESTION_OF, {"number": self.index + 1, "total": len(self.ids)})
        parts = [self.quiz.bank.title, number, state] if len(self.ids) > 1 else [self.quiz.bank.title, state]
        return Text(" · ".join(part.en for part in parts), " · ".join(part.nl for part in parts))

    def _given(self, question: Question) -> Any:
        """What to put into the control: what stands in it, else what was answered before."""
        if self._field is not None and self._shown_id == question.id:
            return self._field.value()
        self._shown_id = question.id
        if isinstance(question, PredictQuestion):
            return self.quiz.prediction(question.id)
        given: Answer | None = self.quiz.given(question.id)
        return None if given is None else given.value

    _shown_id = ""

    def _answer(self) -> None:
        question, field = self.question, self._field
        if question is None or field is None or self._checks.runs(question):
            return
        if field.enter is not None:
            field.enter.answered()
        if self._drawn[1] != self.quiz.drawn:  # begun anew in another notebook, or a class joined: other numbers
            self._follow()
            return
        value = field.value()
        if value is None:
            missing = words.PICK_FIRST
            if isinstance(question, CodeQuestion):
                missing = fill(words.NO_FUNCTION, {"name": exercise(question.exercise).function})
            self._said = Feedback(missing, self.quiz.language, counted=False)
        elif isinstance(question, CodeQuestion):
            self._checks.begin(question, value)
            self._said = self._checks.said(question)
        else:
            self._said = self.quiz.answer(question.id, value)
            if field.enter is not None:
                field.enter.answered()  # a slow disk took a while, and a key that came with the click is handled now
        self._draw_outcome()

    def _checked(self, question: Question) -> None:
        if self.question is question:
            self._said = self._checks.said(question)
        self._guard(self._draw_outcome)()

    def _draw_outcome(self) -> None:
        """What an answer changes on the page."""
        self._head.value = self._in_language(self._heading())
        self._draw_words()
        self._show_buttons(self.question)

    def _hint(self) -> None:
        if self.question is not None:
            hint = self.quiz.hint(self.question.id)
            if hint not in self._hints:
                self._hints.append(hint)
            self._draw_words()

    def _solution(self) -> None:
        if self.question is not None:
            self._said = self.quiz.solution(self.question.id)
            self._draw_words()

    def _retake(self) -> None:
        self.quiz.retake()
        self._begin_anew()  # also where nothing was answered, so that no take has begun

    def _begin_anew(self) -> None:
        self._shown_id = ""
        self.go(0)

    def _change_language(self) -> None:
        if self._language.value != self.quiz.language:
            self.quiz.language = self._language.value  # all panels are told, this one too

    def _follow(self) -> None:
        """Something was answered, measured or chosen, here or in another panel: show it."""
        language, drawn = self._drawn
        if drawn != self.quiz.drawn:
            self._begin_anew()
        elif language == self.quiz.language:
            self._draw_outcome()
        else:
            self._draw()
        self._language.value = self.quiz.language

    def _where_stopped(self) -> int:
        """The first question without an answer; the result if there is none."""
        for index, question_id in enumerate(self.ids):
            question = self.quiz.bank.question(question_id)
            if not isinstance(question, PredictQuestion) and self.quiz.given(question_id) is None:
                return index
        return len(self.ids) if len(self.ids) > 1 else 0

    def _guard(self, action: Callable[[], None]) -> Callable[..., None]:
        """A callback whose error is shown here: Jupyter would lose it."""

        def run(*_: Any) -> None:
            with PANELS:
                try:
                    action()
                except Exception as error:
                    self._say(went_wrong(error))

        return run

    def _say(self, text: Text) -> None:
        said = self._in_language(html(text.to(self.quiz.language)))
        self._status.value = f'<div role="status" class="gradacc-said">{said}</div>'

    def _in_language(self, inner: str | Text) -> str:
        """HTML, or a text to escape, marked with its language for screen readers."""
        language = self.quiz.language
        shown = html(inner.to(language)) if isinstance(inner, Text) else inner
        return f'<div lang="{language}">{shown}</div>'

"""What an exercise is, and how a learner's function is checked: by what it does, in a process of its own."""

import ast
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any, Protocol

from gradacc_lessons.detective.scenarios import Scope
from gradacc_lessons.quiz.call_in_child import Call, Returned, call_in_child
from gradacc_lessons.quiz.grade import Grade, no_answer
from gradacc_lessons.quiz.number import written
from gradacc_lessons.quiz.whole_source import whole_source
from gradacc_lessons.text import LANGUAGES, Text, joined

KEPT_SOURCE = 20_000
"""Characters of a learner's function that are kept with the answer."""


@dataclass(frozen=True)
class WrongAnswer:
    """An answer that must fail, and what it must be told."""

    source: str
    """The function, as a learner would write it."""
    fault: str
    """Id of the mistake: of the detective's catalogue for loops, of the exercise's own for other functions."""
    message: Text | None = None
    """What to say; None for a loop that the catalogue describes well enough for this exercise."""


class Check(Protocol):
    """How a function is judged."""

    def __call__(self, exercise: "Exercise", function: Callable[..., Any]) -> Grade: ...


@dataclass(frozen=True)
class Exercise:
    """A function to write."""

    key: str
    """Its name in the banks."""
    function: str
    """The name of the function that the learner writes."""
    statement: Text
    """What is asked."""
    starter: str
    """What the learner begins with: source that raises NotImplementedError, or a loop to repair."""
    hints: tuple[Text, ...]
    """From a nudge to nearly all."""
    solution: str
    """One right answer, as source."""
    wrong: tuple[WrongAnswer, ...]
    """Answers that must fail."""
    judge: Check
    """How it is checked."""

    def check(self, function: Any) -> Grade:
        """Grade a function; one that is unchanged, or no function at all, costs nothing."""
        if not callable(function):
            return no_answer(
                Text(
                    f"Give the function itself: write {self.function}, without parentheses after it.",
                    f"Geef de functie zelf: schrijf {self.function}, zonder haakjes erachter.",
                )
            )
        if any(same_code(function, given) for given in as_given(self.starter, self.function)):
            return no_answer(NOT_ATTEMPTED)
        return self.judge(self, function)


NOT_ATTEMPTED = Text(
    "The function is still as it was given. Change it, run the cell, and check again.",
    "De functie is nog zoals je hem kreeg. Verander hem, voer de cel uit en laat hem opnieuw nakijken.",
)
CRASHED, TIMED_OUT = "crashed", "timed_out"


@dataclass(frozen=True)
class LoopCheck:
    """A training loop: the detective runs it and names what is wrong."""

    scope: Scope
    """How much the loop must get right."""

    def __call__(self, exercise: Exercise, function: Callable[..., Any]) -> Grade:
        from gradacc_lessons.detective.diagnose import Outcome, diagnose

        diagnosis = diagnose(function, self.scope)
        said = Text(*(diagnosis.to(language) for language in LANGUAGES))
        match diagnosis.outcome:
            case Outcome.CORRECT:
                return Grade(1.0, True, said)
            case Outcome.NOT_ATTEMPTED:
                return no_answer(said)
            case Outcome.TIMED_OUT:
                return _timed_out(exercise)
            case Outcome.CRASHED:
                return Grade(0.0, False, said, CRASHED)
            case Outcome.WRONG:
                fault = ",".join(diagnosis.faults) or None
                own = [wrong.message for wrong in exercise.wrong if wrong.fault == fault and wrong.message]
                return Grade(0.0, False, own[0] if own else said, fault)


@dataclass(frozen=True)
class Group:
    """Calls that together are one visible check."""

    name: Text
    """What they have in common, to finish the sentence "the first that does not: …"."""
    calls: tuple[Call, ...]
    """The arguments of each call."""


@dataclass(frozen=True)
class ValueCheck:
    """A function of numbers: its values must be those of the solution."""

    groups: tuple[Group, ...]
    """The visible checks, the simplest first."""
    tolerance: float = 1e-9
    """Relative: how far a value may be from the solution's; larger where float32 is right as well."""

    def __call__(self, exercise: Exercise, function: Callable[..., Any]) -> Grade:
        calls = [call for group in self.groups for call in group.calls]
        returned = call_in_child(function, calls)
        if returned.problem is not None:
            return did_not_return(exercise, returned)
        right = self.values(exercise.solution, exercise.function)
        if self._equal(returned.values, right):
            return all_hold(len(self.groups))
        for wrong in exercise.wrong:
            if wrong.message and self._equal(returned.values, self.values(wrong.source, exercise.function)):
                return Grade(0.0, False, wrong.message, wrong.fault)
        return self._unknown(exercise, returned.values, right)

    def values(self, source: str, name: str) -> list[float | None]:
        """What one of the exercise's own functions returns for every call."""
        function = build(source, name)
        return [function(*call) for group in self.groups for call in group.calls]

    def _equal(self, values: Sequence[float | None], right: Sequence[float | None]) -> bool:
        pairs = zip(values, right, strict=True)
        return all(a is not None and b is not None and math.isclose(a, b, rel_tol=self.tolerance) for a, b in pairs)

    def _unknown(self, exercise: Exercise, values: Sequence[float | None], right: Sequence[float | None]) -> Grade:
        """Wrong in a way that nobody foresaw: say where, show what came back, and not what should have."""
        at, holding, failing = 0, 0, None
        for group in self.groups:
            bad = [k for k in range(at, at + len(group.calls)) if not self._equal(values[k : k + 1], right[k : k + 1])]
            holding += not bad
            if bad and failing is None:
                failing = group, group.calls[bad[0] - at], values[bad[0]]
            at += len(group.calls)
        assert failing is not None
        group, call, value = failing
        shown = f"{exercise.function}({', '.join(map(str, call))})"
        if value is None:
            came = Text(
                f"{shown} did not return a number. Is there a `return`?",
                f"{shown} gaf geen getal terug. Staat er een `return`?",
            )
        else:
            came = Text(f"{shown} returned {written(value, 'en')}.", f"{shown} gaf {written(value, 'nl')}.")
        grade = some_hold(holding, len(self.groups), group)
        return replace(grade, feedback=joined([grade.feedback, came]))


def all_hold(total: int) -> Grade:
    """The grade of an answer for which every visible check holds."""
    return Grade(
        1.0,
        True,
        Text(f"{total} of {total} visible checks hold.", f"{total} van {total} zichtbare controles kloppen."),
    )


def some_hold(holding: int, total: int, failing: Group) -> Grade:
    """The grade of an answer that is wrong in a way that nobody foresaw: which check is the first that fails."""
    text = Text(
        f"{holding} of {total} visible checks hold. The first that does not: {failing.name.en}.",
        f"{holding} van {total} zichtbare controles kloppen. De eerste die niet klopt: {failing.name.nl}.",
    )
    return Grade(0.0, False, text)


def did_not_return(exercise: Exercise, returned: Returned) -> Grade:
    """A call that raised, hung, or came back without an answer."""
    if returned.problem == "timed_out":
        return _timed_out(exercise)
    if returned.problem == "not_implemented":
        return no_answer(NOT_ATTEMPTED)
    line_en, line_nl = (f" ({word} {returned.line})" if returned.line else "" for word in ("line", "regel"))
    if returned.problem == "raised":
        text = Text(
            f"{exercise.function} stopped with {returned.detail}{line_en}.",
            f"{exercise.function} stopte met {returned.detail}{line_nl}.",
        )
    else:
        text = Text(
            f"{exercise.function} ended its process without returning ({returned.detail}).",
            f"{exercise.function} beëindigde zijn proces zonder iets terug te geven ({returned.detail}).",
        )
    return Grade(0.0, False, text, CRASHED)


def _timed_out(exercise: Exercise) -> Grade:
    text = Text(
        f"{exercise.function} did not come back in time, so it was ended. Is there a loop without an end?",
        f"{exercise.function} kwam niet op tijd terug en is gestopt. Zit er een lus zonder einde in?",
    )
    return Grade(0.0, False, text, TIMED_OUT)


def build(source: str, name: str) -> Callable[..., Any]:
    """The function that one of the course's own sources defines. Never for a learner's text."""
    namespace: dict[str, Any] = {}
    exec(compile(source, f"<{name}>", "exec"), namespace)
    function: Callable[..., Any] = namespace[name]
    return function


def as_given(source: str, name: str) -> Iterator[Callable[..., Any]]:
    """The function of a starter, compiled in the two ways in which a learner may have it.

    A file is compiled as a whole. A notebook compiles each statement of a cell for itself, and calls of functions in
    modules come out otherwise then: Python looks whether the same compilation has imported the module.
    """
    yield build(source, name)
    namespace: dict[str, Any] = {}
    for statement in ast.parse(source).body:
        exec(compile(ast.Module([statement], []), f"<{name}>", "exec"), namespace)
    function: Callable[..., Any] = namespace[name]
    yield function


def same_code(function: Any, other: Callable[..., Any]) -> bool:
    """Whether two functions do the same, instruction by instruction; names of files and line numbers aside."""
    codes = [getattr(each, "__code__", None) for each in (function, other)]
    parts = [_parts(code) for code in codes if isinstance(code, CodeType)]
    return len(parts) == 2 and parts[0] == parts[1]


def _parts(code: CodeType) -> tuple[Any, ...]:
    """What code does: its instructions, names and constants, and the same of the functions within it."""
    constants = [_parts(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars, constants


def source_of(function: Any) -> str:
    """The function's source with what it uses, to keep with the answer; empty where Python cannot tell."""
    return whole_source(function, KEPT_SOURCE)

"""A page for each learner: every answer that counts, what was said to it, and where to read again.

A page never shows a right answer that the learner did not give, unless `solutions` is asked for. `index.html` is
the teacher's.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from html import escape
from itertools import chain
from pathlib import Path

from gradacc_lessons.classroom import report_words as say
from gradacc_lessons.classroom.answers import shown_answer
from gradacc_lessons.classroom.class_folder import ClassFolder
from gradacc_lessons.classroom.codes import ClassCode
from gradacc_lessons.classroom.page import listing, page, table
from gradacc_lessons.classroom.results import AnswerResult, FileResult, LessonResult
from gradacc_lessons.classroom.roster import Learner
from gradacc_lessons.classroom.same_work import SAME_WORK
from gradacc_lessons.progress_records import percent
from gradacc_lessons.quiz import draw, sentences, words
from gradacc_lessons.quiz.exercises import exercise
from gradacc_lessons.quiz.feedback import html
from gradacc_lessons.quiz.formula import Number
from gradacc_lessons.quiz.grade import fill
from gradacc_lessons.quiz.questions import Bank, ChoiceQuestion, CodeQuestion, NumberQuestion, Question, SpotQuestion
from gradacc_lessons.text import Language, Text, joined
from gradacc_lessons.whole_file import write_whole

FOR_THE_TEACHER = (SAME_WORK,)
"""Notes that are not on the learner's own page."""


@dataclass(frozen=True)
class Reporter:
    """Writes the pages of one class."""

    of_class: ClassFolder
    """The class."""
    language: Language
    """The language of the pages."""
    solutions: bool = False
    """Whether right answers are shown."""

    def write(self, results: Iterable[FileResult], folder: Path) -> list[Path]:
        """A page for everybody in the roster, and the teacher's index.html; `results` may come one at a time."""
        folder.mkdir(parents=True, exist_ok=True)
        graded, others, files = dict[str, FileResult](), defaultdict[str | None, list[FileResult]](list), []
        for result in results:
            learner = self.of_class.learners.get(result.learner or "")
            if result.status != "graded" or learner is None:
                others[result.learner].append(result.without_answers())
                continue
            files.append(self._write_page(folder, learner, self.learner_page(learner, result)))
            graded[learner.id] = result.without_answers()
        for learner in self.of_class.learners.values():
            if learner.id not in graded:
                files.append(self._write_page(folder, learner, self.empty_page(learner, others.get(learner.id, []))))
        index = folder / "index.html"
        of_others = sorted(chain.from_iterable(others.values()), key=lambda each: each.file)
        write_whole(index, self._index(graded, of_others))
        return [index, *files]

    def _write_page(self, folder: Path, learner: Learner, content: bytes) -> Path:
        file = folder / self.file_name(learner)
        write_whole(file, content)
        return file

    def file_name(self, learner: Learner) -> str:
        """What the learner's page is called."""
        return f"{self.of_class.stem(learner)}.html"

    def empty_page(self, learner: Learner, others: Iterable[FileResult]) -> bytes:
        """The page of a learner of whom no file was graded: the reasons, if there are files."""
        said = [self._(say.NO_FILE)]
        for each in others:
            reason = each.reason.text if each.reason else Text("", "")
            if each.reason and each.reason.id == "copied":
                reason = say.COPIED  # without the name of a classmate's file
            said.append(self._(sentences.fill_texts(say.NOT_GRADED, {"file": each.file, "reason": reason})))
        return self._page(learner, "".join(f"<p>{escape(one)}</p>" for one in said))

    def learner_page(self, learner: Learner, result: FileResult) -> bytes:
        """The page of a learner whose file was graded."""
        code = self.of_class.codes[learner.id]
        about = fill(say.FILE, {"file": result.file, "written": (result.written or "?")[:16].replace("T", " ")})
        parts = [f"<p>{escape(self._(about))}</p>"]
        notes = [note for note in result.notes if note.id not in FOR_THE_TEACHER]
        if notes:
            parts.append(f"<ul>{''.join(f'<li>{escape(self._(note.text))}</li>' for note in notes)}</ul>")
        parts.append(self._overview(result.lessons) if result.lessons else f"<p>{escape(self._(say.NOTHING))}</p>")
        parts += [self._lesson(lesson, code) for lesson in result.lessons]
        return self._page(learner, "\n".join(parts))

    @cached_property
    def _bank(self) -> Callable[[str], tuple[Bank, str]]:
        return cache(self.of_class.bank)

    def _(self, text: Text) -> str:
        return text.to(self.language)

    def _page(self, learner: Learner, body: str) -> bytes:
        title = fill(say.TITLE, {"name": learner.name or learner.id})
        of_class = fill(say.CLASS, {"name": self.of_class.name})
        return page(self._(title), self.language, f"<p>{escape(self._(of_class))}</p>\n{body}")

    def _overview(self, lessons: Iterable[LessonResult]) -> str:
        rows = [
            [
                escape(self._title(each.lesson)),
                str(each.take),
                escape(self._points(each.points, each.of)),
                f"{percent(each.share)}%",
                escape(self._(words.PASSED if each.passed else words.NOT_YET)),
            ]
            for each in lessons
        ]
        return table(self._(say.BY_LESSON), [self._(each) for each in say.HEADING], rows, numbers=(1, 2, 3))

    def _points(self, points: float, of: float) -> str:
        return self._(fill(say.POINTS, {"points": round(points, 2), "of": of}))

    def _title(self, lesson: str) -> str:
        if lesson not in self.of_class.bank_files:
            return lesson
        return f"{lesson[:2]} {self._(self._bank(lesson)[0].title)}"

    def _lesson(self, result: LessonResult, code: ClassCode) -> str:
        parts = [f"<h2>{escape(self._title(result.lesson))}</h2>"]
        if result.lesson not in self.of_class.bank_files:
            return f"{parts[0]}<p>{escape(self._(say.GONE))}</p>"
        bank, digest = self._bank(result.lesson)
        if digest != result.bank:
            parts.append(f"<p>{escape(self._(say.OTHER_BANK))}</p>")
        given, total = result.counting(), len(bank.counted)
        for number, question in enumerate(bank.counted, start=1):
            numbers: dict[str, Number] = {}
            if isinstance(question, NumberQuestion):
                numbers = draw.variables(question.variables, draw.key(code.text, result.take, question.id))
            answer = given.get(question.id)
            place = {"number": number, "total": total, "verdict": _verdict(answer)}
            earned = self._points(question.points * (answer.fraction if answer else 0.0), question.points)
            heading = sentences.fill_texts(say.QUESTION, {**place, "points": f"({earned})"})
            parts.append(
                f'<section class="{_style(answer)}"><h3>{escape(self._(heading))}</h3>{self._asked(question, numbers)}'
                f"<dl>{''.join(self._answered(question, answer, numbers))}</dl></section>"
            )
        return "\n".join(parts)

    def _asked(self, question: Question, numbers: dict[str, Number]) -> str:
        if isinstance(question, CodeQuestion):
            task = exercise(question.exercise).statement
            prompt = joined([question.prompt, task], "\n") if question.prompt else task
            return f"<p>{html(self._(prompt))}</p>"
        code = question.code if isinstance(question, ChoiceQuestion | SpotQuestion) else None
        shown = listing(code.rstrip().split("\n"), numbered=isinstance(question, SpotQuestion)) if code else ""
        return f"<p>{html(self._(fill(question.prompt, numbers)))}</p>{shown}"

    def _answered(self, question: Question, answer: AnswerResult | None, numbers: dict[str, Number]) -> Iterator[str]:
        """The answer, what was said to it, and what follows from it: names and their descriptions."""
        if answer:
            yield self._described(say.YOUR_ANSWER, shown_answer(question, answer.value))
            if answer.said:
                yield self._described(say.SAID, answer.said)
        if answer is None or answer.fraction < 1:
            yield self._described(say.REREAD, Text(question.section, question.section))
            if self.solutions:
                if isinstance(question, CodeQuestion):
                    code = escape(exercise(question.exercise).solution)
                    yield f"<dt>{escape(self._(say.SOLUTION))}</dt><dd><pre>{code}</pre></dd>"
                else:
                    yield self._described(say.SOLUTION, sentences.right(question, numbers))

    def _described(self, name: Text, text: Text) -> str:
        return f"<dt>{escape(self._(name))}</dt><dd>{html(self._(text).strip())}</dd>"

    def _index(self, graded: dict[str, FileResult], others: list[FileResult]) -> bytes:
        lessons = sorted({each.lesson for result in graded.values() for each in result.lessons})
        short = [lesson[:2] for lesson in lessons]  # by number, or else eleven lessons are wider than any screen
        rows = []
        for learner in self.of_class.learners.values():
            result = graded.get(learner.id)
            shares = {each.lesson: f"{percent(each.share)}%" for each in result.lessons} if result else {}
            link = f'<a href="{self.file_name(learner)}">{escape(learner.name or learner.id)}</a>'
            notes = " ".join(self._(note.text) for note in result.notes) if result else ""
            file = result.file if result else self._(say.NONE)
            rows.append([link, *(shares.get(lesson, "") for lesson in lessons), escape(file), escape(notes)])
        who, file_name, notes_name = (self._(each) for each in say.OVERVIEW_HEADING)
        numbers = range(1, len(lessons) + 1)
        body = table(
            self._(say.LEARNERS),
            [who, *(short if len(set(short)) == len(short) else lessons), file_name, notes_name],
            rows,
            numbers,
        )
        if others:
            files = [
                [
                    escape(each.file),
                    escape(self._(say.STATUS[each.status])),
                    escape(self._(each.reason.text)) if each.reason else "",
                ]
                for each in others
            ]
            body += table(self._(say.OTHER_FILES), [self._(each) for each in say.FILES_HEADING], files)
        return page(self._(fill(say.OVERVIEW, {"name": self.of_class.name})), self.language, body)


def _verdict(answer: AnswerResult | None) -> Text:
    if answer is None:
        return Text(*(f"○ {text}." for text in (words.STATE_OPEN.en, words.STATE_OPEN.nl)))
    if answer.fraction >= 1:
        return words.RIGHT
    return fill(words.PARTLY, {"share": f"{answer.fraction:.0%}"}) if answer.fraction > 0 else words.WRONG


def _style(answer: AnswerResult | None) -> str:
    if answer is None:
        return "open"
    return "right" if answer.fraction >= 1 else "partly" if answer.fraction > 0 else "wrong"

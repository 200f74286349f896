"""Certificates of a class: for what grading found and nothing else, signed with the class's teacher key.

A learner who passed every lesson gets the full certificate, one who passed the core lessons the core certificate.
What was issued before stays as it is, with its date, so that a second run changes nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Literal

from gradacc_lessons.certificate.credential import Credential, Kind
from gradacc_lessons.certificate.earned import needed
from gradacc_lessons.certificate.files import FORMATS, Format, save
from gradacc_lessons.certificate.issue import issue
from gradacc_lessons.certificate.keys import SigningKey, key_in
from gradacc_lessons.certificate.names import clean_name
from gradacc_lessons.certificate.problem import CertificateError
from gradacc_lessons.certificate.source import read_source
from gradacc_lessons.classroom import certify_words as say
from gradacc_lessons.classroom.class_folder import ClassFolder
from gradacc_lessons.classroom.results import FileResult, LessonResult
from gradacc_lessons.classroom.roster import Learner
from gradacc_lessons.classroom.same_work import SAME_WORK
from gradacc_lessons.classroom.tables import as_csv
from gradacc_lessons.text import Language, Text, joined
from gradacc_lessons.whole_file import write_whole

KINDS: tuple[Kind, ...] = ("full", "core")
"""The one that asks for more comes first."""
LIST_NAME = "certificates.csv"
Done = Literal["issued", "kept", "open", "held"]
Tell = Callable[[int, int], object]
"""Hears how many learners are done, and how many there are."""


@dataclass(frozen=True)
class Outcome:
    """What came of one learner."""

    learner: Learner
    """Who."""
    done: Done
    """issued now, kept from before, open (not earned yet), held (earned, but not issued)."""
    remark: Text
    """What is missing, why it was held, or what the teacher should know of it; empty if nothing."""
    credential: Credential | None = None
    """The certificate; None if open or held."""
    file: str = ""
    """The name of its files, without their ends."""
    look: bool = False
    """Whether the remark asks something of the teacher."""


@dataclass(frozen=True)
class Certifier:
    """Issues the certificates of one class."""

    of_class: ClassFolder
    """The class."""
    issuer_name: str
    """Who issues them, as it stands on them."""
    folder: Path
    """Where they are written."""
    language: Language
    """The language that they are written in."""
    valid_until: datetime | None = None
    """When they expire; None if they do not."""
    at: datetime | None = None
    """When it is; now if None."""

    @cached_property
    def key(self) -> SigningKey:
        """The teacher's key; CertificateError or OSError if it cannot be used."""
        return key_in(self.of_class.folder / "teacher.pem")

    def certify(self, results: Iterable[FileResult], tell: Tell = lambda done, total: None) -> list[Outcome]:
        """Write what each learner in the roster has earned, and the list of it; `results` may come one at a time.

        CertificateError for an issuer's name, an end or a key that cannot be used, OSError if the disk refuses: what
        was written until then stays, and the same call goes on from there.
        """
        clean_name(self.issuer_name)
        found = {result.learner: _Passed.of(result) for result in results if result.status == "graded"}
        self.folder.mkdir(parents=True, exist_ok=True)
        outcomes, learners = [], self.of_class.learners.values()
        tell(0, len(learners))
        for learner in learners:
            outcomes.append(self._one(learner, found.get(learner.id)))
            tell(len(outcomes), len(learners))
        write_whole(self.folder / LIST_NAME, self._list(outcomes))
        return outcomes

    def _one(self, learner: Learner, passed: "_Passed | None") -> Outcome:
        earned = [kind for kind in KINDS if passed and passed.earns(kind)]
        lost = self._not_earned(learner, [kind for kind in KINDS if kind not in earned])
        if passed is None or not earned:
            remark = lost or (passed.missing() if passed else say.NO_FILE)
            return Outcome(learner, "open", remark, look=bool(lost))
        stem = f"{self.of_class.stem(learner)}-{earned[0]}"
        try:
            fresh, found = self._fresh(learner, earned[0], passed), self._found(stem)
        except _Held as why:
            return Outcome(learner, "held", why.text, look=True)
        kept = self._valid(found)
        if passed.same_work and not kept:
            return Outcome(learner, "held", say.look_first(passed.same_work), look=True)
        missing = [form for form, there in found.items() if not kept or there != kept]
        save(kept or fresh, self.folder, key=self.key, forms=missing, name=stem)
        other = say.stays(kept) if kept and _said(kept) != _said(fresh) else None
        remarks = [each for each in (lost, passed.same_work, other) if each]
        return Outcome(learner, "kept" if kept else "issued", joined(remarks), kept or fresh, stem, bool(remarks))

    def _not_earned(self, learner: Learner, kinds: Iterable[Kind]) -> Text | None:
        """What to say of a certificate from before that these results do not earn; None if there is none."""
        for kind in kinds:
            stem = f"{self.of_class.stem(learner)}-{kind}"
            with suppress(_Held):  # somebody else's file is left alone
                if kept := self._valid(self._found(stem)):
                    return say.not_earned_now(kept, stem)
        return None

    def _fresh(self, learner: Learner, kind: Kind, passed: "_Passed") -> Credential:
        """The certificate that would be issued now."""
        if not learner.name:
            raise _Held(say.NO_NAME)
        try:
            if clean_name(learner.name) == clean_name(self.issuer_name):
                raise _Held(say.ISSUES_TO_ITSELF)
        except CertificateError as problem:
            raise _Held(problem.text) from None
        lessons = {lesson: passed.lessons[lesson].share for lesson in needed(full=kind == "full").values() if lesson}
        return issue(
            learner.name, lessons, key=self.key, issuer_name=self.issuer_name, kind=kind, valid_from=self._now,
            valid_until=self.valid_until, language=self.language, titles=self._own_titles,
        )  # fmt: skip

    @cached_property
    def _now(self) -> datetime:
        return self.at or datetime.now(UTC)

    @cached_property
    def _own_titles(self) -> Mapping[str, str]:
        """Of the banks that the class has in place of the course's."""
        own = (
            lesson for lesson, file in self.of_class.bank_files.items() if file.parent == self.of_class.folder / "bank"
        )
        return {lesson: self.of_class.bank(lesson)[0].title.to(self.language) for lesson in own}

    def _found(self, stem: str) -> dict[Format, Credential | None]:
        """What is there under this name, by form; _Held if a file there is not the teacher's."""
        return {form: self._read(stem, form) for form in FORMATS}

    def _valid(self, found: Mapping[Format, Credential | None]) -> Credential | None:
        """What was issued before and has not expired."""
        ends = ((each, each.valid_until) for each in found.values() if each)
        return next((each for each, end in ends if end is None or self._now < end), None)

    def _read(self, stem: str, form: Format) -> Credential | None:
        file = self.folder / f"{stem}.{form}"
        if not (file.exists() or file.is_symlink()):
            return None
        try:
            found = read_source(file)
        except CertificateError:
            found = None
        if found is None or found.issuer != self.key.did:
            raise _Held(say.in_the_way(file.name))
        return found

    def _list(self, outcomes: Iterable[Outcome]) -> bytes:
        """Everybody in the roster, for the teacher: what they have, and what they lack."""
        rows = []
        for each in outcomes:
            about = ["", "", ""]
            if have := each.credential:
                about = [say.KIND[have.kind].to(self.language), have.id, f"{have.valid_from:%Y-%m-%d}"]
            rows.append([each.learner.id, each.learner.name, *about, each.file, each.remark.to(self.language)])
        return as_csv([heading.to(self.language) for heading in say.HEADING], rows)


class _Held(Exception):
    """A certificate was earned and is not issued, for the reason in `text`."""

    def __init__(self, text: Text) -> None:
        super().__init__(text.en)
        self.text = text


@dataclass(frozen=True)
class _Passed:
    """What grading found of one learner, as far as certificates go by it."""

    lessons: Mapping[str, LessonResult]
    """By lesson; without the answers, which take room."""
    same_work: Text | None
    """Grading's note that the same work is in another file, and nothing shows whose it is."""

    @classmethod
    def of(cls, result: FileResult) -> "_Passed":
        kept = {each.lesson: each for each in result.without_answers().lessons}
        return cls(kept, next((note.text for note in result.notes if note.id == SAME_WORK), None))

    def earns(self, kind: Kind) -> bool:
        """Whether every lesson that it needs was passed."""
        return all(self._passed(lesson) for lesson in needed(full=kind == "full").values())

    def _passed(self, lesson: str | None) -> bool:
        result = self.lessons.get(lesson or "")
        return result is not None and result.passed

    def missing(self) -> Text:
        """What is missing for the core certificate."""
        lacking = []
        for number, lesson in needed(full=False).items():
            if not self._passed(lesson):
                result = self.lessons.get(lesson or "")
                lacking.append((lesson or number, result.share if result else None))
        return say.missing(lacking)


def _said(credential: Credential) -> tuple[object, ...]:
    """What a reader sees on a certificate, but for its date."""
    lessons = tuple((each.name, each.percent) for each in credential.lessons)
    return (
        credential.name, credential.issuer_name, credential.kind, lessons, credential.valid_until, credential.language
    )  # fmt: skip


def summarised(outcomes: Iterable[Outcome]) -> Iterator[Text]:
    """What to say of all: how many of each, and a line for each that asks something of the teacher."""
    outcomes = list(outcomes)
    yield say.counts({done: sum(each.done == done for each in outcomes) for done in ("issued", "kept", "open", "held")})
    for each in outcomes:
        if each.look:
            yield say.line(each.learner.id, each.learner.name, each.remark)

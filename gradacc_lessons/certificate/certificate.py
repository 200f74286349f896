"""The learner's own certificate: what is still missing for it, the picture, and its files."""

from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from gradacc_lessons.certificate.earned import standings, still_missing
from gradacc_lessons.certificate.problem import CertificateError, need_extra
from gradacc_lessons.device import Place, place
from gradacc_lessons.home import expanded
from gradacc_lessons.progress import Progress, learner_progress
from gradacc_lessons.text import Language, Text, joined

if TYPE_CHECKING:
    from datetime import datetime

    from gradacc_lessons.certificate.credential import Credential


class Certificate:
    """A certificate for the learner whose progress this is, signed with their own key: self-study.

    `name` is what stands on it. `full` asks for every lesson of the installed course, else for the core lessons.
    `language` is "en" or "nl"; without it, the one the learner chose. Nothing leaves the computer.
    """

    def __init__(
        self,
        name: str,
        *,
        full: bool = False,
        language: Language | None = None,
        valid_until: "datetime | None" = None,
        progress: Progress | None = None,
    ) -> None:
        self.name = name
        self.full = full
        self.valid_until = valid_until
        self._progress = progress or learner_progress()
        self.language: Language = language or self._progress.language
        self.lessons = standings(self._progress, full=full)
        """How the learner stands in each lesson that it needs."""

    @property
    def earned(self) -> bool:
        """Whether every lesson that it needs was passed."""
        return all(lesson.passed for lesson in self.lessons)

    @property
    def missing(self) -> Text | None:
        """What is missing, lesson by lesson; None if it is earned."""
        return None if self.earned else still_missing(self.lessons, full=self.full)

    @cached_property
    def credential(self) -> "Credential":
        """The certificate, issued now; CertificateError says what is missing for it."""
        if self.missing is not None:
            raise CertificateError(self.missing.en, self.missing.nl)
        need_extra()
        from gradacc_lessons.certificate.issue import issue
        from gradacc_lessons.certificate.keys import own_key

        return issue(
            self.name,
            {lesson.lesson: lesson.share for lesson in self.lessons},
            key=own_key(),
            issuer_name=None,
            kind="full" if self.full else "core",
            valid_until=self.valid_until,
            language=self.language,
        )

    def save(self, folder: Path | str = ".") -> list[Path]:
        """Write it as .svg, .png, .jwt and .json; the paths. CertificateError if it is not earned."""
        credential = self.credential
        from gradacc_lessons.certificate.files import save
        from gradacc_lessons.certificate.keys import own_key

        return save(credential, expanded(folder), key=own_key())

    @property
    def words(self) -> Text:
        """What it proves, and what its picture could not show."""
        from gradacc_lessons.certificate import picture, words

        return joined([words.proves(self.credential.self_issued), *picture.notes(self.credential)], "\n")

    def show(self) -> None:
        """Show the picture in a notebook, and what it proves; or else, in a sentence, what is missing for it."""
        in_notebook = place() is not Place.TERMINAL
        try:
            text, shown = self.words.to(self.language), ""
            if in_notebook:
                from gradacc_lessons.certificate.picture import as_html

                shown = as_html(self.credential)
        except CertificateError as problem:
            text, shown = problem.text.to(self.language), ""
        if not in_notebook:
            print(text)
            return
        from IPython.display import HTML, display

        display(HTML(f'{shown}<p style="white-space:pre-line">{escape(text)}</p>'))

"""Which mistake is in this loop? Runs it in a process of its own and says so."""

import linecache
import signal
from collections.abc import Callable
from typing import Any

from gradacc_lessons.detective import limits
from gradacc_lessons.detective.client import Reply, WorkerError, ask_for
from gradacc_lessons.detective.diagnosis import Diagnosis as Diagnosis
from gradacc_lessons.detective.diagnosis import Outcome as Outcome
from gradacc_lessons.detective.exchange import described, read_observations
from gradacc_lessons.detective.files import FileFunction
from gradacc_lessons.detective.scenarios import SCOPES, Scope, included
from gradacc_lessons.detective.sending import ON_THE_WAY, MisuseError, NotPortableError, code_file, portable
from gradacc_lessons.detective.verdict import judge
from gradacc_lessons.detective.wire import Array
from gradacc_lessons.detective.wording import say
from gradacc_lessons.text import LANGUAGES, Language, Text

MEGABYTES, KILOBYTES = limits.MEMORY_LIMIT // 2**20, limits.OUTPUT_LIMIT // 2**10
"""The limits as messages give them."""


def diagnose(
    train_epoch: Callable[..., Any] | FileFunction,
    scope: Scope = "items",
    *,
    language: Language = "en",
    time_limit: float = limits.TIME_LIMIT,
) -> Diagnosis:
    """Run `train_epoch` on small problems and name its mistake.

    `train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps)` trains for one epoch; it may also
    accept `count`, `max_norm` and `scheduler` by keyword. `scope` is what is asked of it: "windows" (equal
    micro-batches, full windows), "tail" (a short last window too), "items" (micro-batches of different size too).
    `time_limit` is in seconds for the whole check, an hour at most. Never raises because of the loop: what it does
    wrong is in the Diagnosis. ValueError for an unknown scope or language, or a time limit that cannot be kept.
    """
    if scope not in SCOPES:
        raise ValueError(f"the scope {scope!r} is not one of {', '.join(SCOPES)}")
    if language not in LANGUAGES:
        raise ValueError(f"the language {language!r} is not one of {', '.join(LANGUAGES)}")
    check = _Check(scope, language, limits.checked(time_limit))
    if not callable(train_epoch) and not isinstance(train_epoch, FileFunction):
        return check.says(Outcome.WRONG, "not_callable", kind=f"{type(train_epoch).__name__}")
    try:
        source = train_epoch.source() if isinstance(train_epoch, FileFunction) else portable(train_epoch)
    except NotPortableError as error:
        return check.says(Outcome.CRASHED, "not_portable", error=str(error))
    check.file = str(train_epoch.path) if isinstance(train_epoch, FileFunction) else code_file(train_epoch)
    return check.run(source)


class _Check:
    """One question to the worker and the reading of its answer."""

    def __init__(self, scope: Scope, language: Language, time_limit: float) -> None:
        self.scope, self.language, self.time_limit = scope, language, time_limit
        self.printed = ""
        self.file: str | None = None

    def says(self, outcome: Outcome, sentence: str, **values: Any) -> Diagnosis:
        """The diagnosis of a loop that did not run to its end: a sentence of wording.py with its values."""
        evidence = {"printed": self.printed} if self.printed else {}
        return Diagnosis(outcome, say(sentence, **values), (), evidence, self.language)

    def run(self, source: dict[str, Any]) -> Diagnosis:
        """Ask the worker about the function that `source` describes."""
        specs, arrays = described(included(self.scope))
        try:
            reply = ask_for("diagnose", source, self.time_limit, arrays, specs=specs)
        except WorkerError as error:
            return self.says(Outcome.CRASHED, "no_worker", error=str(error))
        self.printed = reply.printed
        if reply.header is None:
            return self.silent(reply)
        try:
            return self.read(reply.header, reply.arrays)
        except (KeyError, TypeError, ValueError, IndexError, OverflowError):  # not what an honest run sends
            return self.says(Outcome.CRASHED, "unreadable")

    def silent(self, reply: Reply) -> Diagnosis:
        """The diagnosis when the child was ended, ended without a word, or wrote something unreadable."""
        ended_by = signal_name(-reply.code)
        if reply.reason == "time" or ended_by in ("SIGXCPU", "SIGALRM"):
            return self.says(Outcome.TIMED_OUT, "time", limit=self.time_limit)
        if reply.reason == "output":
            return self.says(Outcome.CRASHED, "output", limit=KILOBYTES)
        if reply.reason == "memory" or (reply.reason is None and reply.code == limits.OUT_OF_MEMORY):
            return self.says(Outcome.CRASHED, "memory", limit=MEGABYTES)
        if reply.reason is None and reply.code < 0:
            return self.says(Outcome.CRASHED, "killed", signal=ended_by)
        if reply.reason is None and not reply.frame:
            return self.says(Outcome.CRASHED, "gone", code=reply.code)
        return self.says(Outcome.CRASHED, "unreadable")

    def read(self, header: dict[str, Any], arrays: dict[str, Array]) -> Diagnosis:
        """The diagnosis in an answer. KeyError, TypeError, ValueError, IndexError or OverflowError when it is not
        what an honest run sends."""
        status = header["status"]
        if status == "ran":
            diagnosis = judge(read_observations(header, arrays, self.scope), self.scope, self.language)
            diagnosis.evidence["seconds"] = round(float(header["seconds"]), 3)
            diagnosis.evidence["printed"] = self.printed
            return diagnosis
        if status == "raised":
            return self.raised(header)
        if status == "not_callable":
            return self.says(Outcome.WRONG, "not_callable", kind=str(header["kind"]))
        if status in ("no_function", "no_module"):
            return self.says(Outcome.CRASHED, "not_in_file", file=self.file)
        return self.says(Outcome.WRONG, {"lazy": "lazy", "signature": "signature"}[status])

    def raised(self, header: dict[str, Any]) -> Diagnosis:
        """The diagnosis of a loop that ends in an exception, or whose function could not be set up."""
        kind, text = str(header["type"]), str(header["text"])
        error = f"{kind}: {text}" if text else kind
        if header["stage"] == "load":
            return self.says(Outcome.CRASHED, "not_received", error=error)
        if kind == "NotImplementedError" and header["own"]:
            return self.says(Outcome.NOT_ATTEMPTED, "not_attempted")
        if kind == "SystemExit":
            return self.says(Outcome.CRASHED, "exit")
        if kind == "MemoryError" or "can't allocate memory" in text or "not enough memory" in text:
            return self.says(Outcome.CRASHED, "memory", limit=MEGABYTES)
        values = {"error": error, "place": self.place(header)}
        return self.says(Outcome.CRASHED, "misuse" if kind == MisuseError.__name__ else "raised", **values)

    def place(self, header: dict[str, Any]) -> Text | str:
        """Line and text of the learner's code at which an error arose; empty where there is none."""
        file = self.file if header["file"] == ON_THE_WAY else header["file"]
        if header["line"] is None or file is None:
            return ""
        line = int(header["line"])
        linecache.checkcache(str(file))
        code = linecache.getline(str(file), line).strip()
        return say("place", line=line, code=f": {code}" if code else "")


def signal_name(number: int) -> str:
    """SIGSEGV for 11, and the number where there is no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)

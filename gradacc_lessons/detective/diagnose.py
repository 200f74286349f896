"""Which mistake is in this loop? Runs it in a process of its own and says so."""

import linecache
import secrets
import signal
from collections.abc import Callable
from typing import Any

import numpy as np

from gradacc_lessons.detective import limits
from gradacc_lessons.detective.client import Answer, WorkerError, ask, import_path
from gradacc_lessons.detective.diagnosis import Diagnosis as Diagnosis
from gradacc_lessons.detective.diagnosis import Outcome as Outcome
from gradacc_lessons.detective.files import FileFunction
from gradacc_lessons.detective.scenarios import (
    CLASSES,
    EPOCHS,
    HIDDEN,
    KEYWORDS,
    SCOPES,
    Scenario,
    Scope,
    included,
    problem,
    scenarios,
)
from gradacc_lessons.detective.sending import ON_THE_WAY, MisuseError, NotPortableError, code_file, portable
from gradacc_lessons.detective.suspects import Observation
from gradacc_lessons.detective.verdict import judge
from gradacc_lessons.detective.wire import Array, WireError, pack, unpack
from gradacc_lessons.detective.wording import SENTENCES
from gradacc_lessons.text import LANGUAGES, Language

COUNTS = (
    "forwards",
    "backwards",
    "pushed",
    "largest_forward",
    "foreign_updates",
    "graphs",
    "data_changed",
    "list_changed",
)
"""What a record holds beside its name and the updates of each epoch: numbers and truth values."""


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
    `time_limit` is in seconds for the whole check. Never raises because of the loop: what it does wrong is in the
    Diagnosis. ValueError for an unknown scope or language or a time limit that is not positive.
    """
    if scope not in SCOPES:
        raise ValueError(f"the scope {scope!r} is not one of {', '.join(SCOPES)}")
    if language not in LANGUAGES:
        raise ValueError(f"the language {language!r} is not one of {', '.join(LANGUAGES)}")
    if not 0 < time_limit < float("inf"):
        raise ValueError(f"the time limit must be a positive number of seconds, not {time_limit!r}")
    check = _Check(scope, language, time_limit)
    if not callable(train_epoch) and not isinstance(train_epoch, FileFunction):
        return check.say(Outcome.WRONG, "not_callable", kind=f"{type(train_epoch).__name__}")
    try:
        source = train_epoch.source() if isinstance(train_epoch, FileFunction) else portable(train_epoch)
    except NotPortableError as error:
        return check.say(Outcome.CRASHED, "not_portable", error=str(error))
    check.file = str(train_epoch.path) if isinstance(train_epoch, FileFunction) else code_file(train_epoch)
    return check.run(source)


class _Check:
    """One question to the worker and the reading of its answer."""

    def __init__(self, scope: Scope, language: Language, time_limit: float) -> None:
        self.scope, self.language, self.time_limit = scope, language, time_limit
        self.nonce = secrets.token_hex(16)
        self.printed = ""
        self.file: str | None = None

    def say(self, outcome: Outcome, name: str, **values: Any) -> Diagnosis:
        message = SENTENCES[name].to(self.language).format(**values)
        return Diagnosis(outcome, message, (), {"printed": self.printed} if self.printed else {}, self.language)

    def run(self, source: dict[str, Any]) -> Diagnosis:
        request = request_frame("diagnose", source, self.nonce, self.time_limit, included(self.scope))
        try:
            answer = ask(request, self.time_limit)
        except WorkerError as error:
            return self.say(Outcome.CRASHED, "no_worker", error=str(error))
        self.printed = answer.printed
        ended = self.ended(answer)
        if ended is not None:
            return ended
        try:
            header, arrays = unpack(answer.frame)
            if header["nonce"] != self.nonce:
                raise WireError("another check's answer")
            return self.read(header, arrays)
        except (WireError, KeyError, TypeError, ValueError, IndexError, OverflowError):
            return self.say(Outcome.CRASHED, "unreadable")

    def ended(self, answer: Answer) -> Diagnosis | None:
        """The diagnosis when the child was ended, or ended without a word."""
        megabytes, kilobytes = limits.MEMORY_LIMIT // 2**20, limits.OUTPUT_LIMIT // 2**10
        if answer.reason == "time" or answer.code == -getattr(signal, "SIGXCPU", 0) != 0:
            return self.say(Outcome.TIMED_OUT, "time", limit=self.time_limit)
        if answer.reason == "output":
            return self.say(Outcome.CRASHED, "output", limit=kilobytes)
        if answer.reason == "memory":
            return self.say(Outcome.CRASHED, "memory", limit=megabytes)
        if answer.reason is not None:
            return self.say(Outcome.CRASHED, "unreadable")
        if answer.code < 0:
            return self.say(Outcome.CRASHED, "killed", signal=signal_name(-answer.code))
        if not answer.frame:
            return self.say(Outcome.CRASHED, "gone", code=answer.code)
        return None

    def read(self, header: dict[str, Any], arrays: dict[str, Array]) -> Diagnosis:
        status = header["status"]
        if status == "ran":
            observations = read_observations(header, arrays, self.scope)
            diagnosis = judge(observations, self.scope, self.language)
            diagnosis.evidence["seconds"] = round(float(header["seconds"]), 3)
            diagnosis.evidence["printed"] = self.printed
            return diagnosis
        if status == "raised":
            return self.raised(header)
        if status == "not_callable":
            return self.say(Outcome.WRONG, "not_callable", kind=str(header["kind"]))
        return self.say(Outcome.WRONG, {"lazy": "lazy", "signature": "signature"}[status])

    def raised(self, header: dict[str, Any]) -> Diagnosis:
        kind, text = str(header["type"]), str(header["text"])
        error = f"{kind}: {text}" if text else kind
        if header["stage"] == "load":
            return self.say(Outcome.CRASHED, "not_received", error=error)
        if kind == "NotImplementedError" and header["own"]:
            return self.say(Outcome.NOT_ATTEMPTED, "not_attempted")
        if kind == "SystemExit":
            return self.say(Outcome.CRASHED, "exit")
        if kind == "MemoryError" or "can't allocate memory" in text or "not enough memory" in text:
            return self.say(Outcome.CRASHED, "memory", limit=limits.MEMORY_LIMIT // 2**20)
        values = {"error": error, "place": self.place(header)}
        return self.say(Outcome.CRASHED, "misuse" if kind == MisuseError.__name__ else "raised", **values)

    def place(self, header: dict[str, Any]) -> str:
        """Line and text of the learner's code at which an error arose; empty where there is none."""
        file = self.file if header["file"] == ON_THE_WAY else header["file"]
        if header["line"] is None or file is None:
            return ""
        line = int(header["line"])
        code = linecache.getline(str(file), line).strip()
        return SENTENCES["place"].to(self.language).format(line=line, code=f": {code}" if code else "")


def request_frame(mode: str, source: dict[str, Any], nonce: str, time_limit: float, tried: list[Scenario]) -> bytes:
    """What the worker is asked: the function and the problems. The right answers stay here."""
    specs: list[dict[str, Any]] = []
    arrays: dict[str, Array] = {}
    for scenario in tried:
        data, name = problem(scenario), scenario.name
        arrays |= {f"{name}/inputs/{k}": x for k, x in enumerate(data.inputs)}
        arrays |= {f"{name}/labels/{k}": y.astype(np.float64) for k, y in enumerate(data.labels)}
        arrays[f"{name}/start"] = data.start
        wanted = (
            "name",
            "kind",
            "optimizer",
            "learning_rate",
            "accumulation_steps",
            "gain",
            "max_norm",
            "decay",
            "needs",
            "unless",
        )
        spec = {key: getattr(scenario, key) for key in wanted}
        specs.append(
            {
                **spec,
                "micro_batches": len(data.inputs),
                "epochs": EPOCHS,
                "hidden": HIDDEN,
                "classes": CLASSES,
            }
        )
    header = {"mode": mode, "nonce": nonce, "time_limit": time_limit, "source": source, "specs": specs}
    return pack({**header, "sys_path": import_path()}, arrays)


def read_observations(header: dict[str, Any], arrays: dict[str, Array], scope: Scope) -> list[Observation]:
    """The observations in an answer, in the order of the scenarios; KeyError, TypeError or ValueError when it is not
    what an honest run sends."""
    records = {record["name"]: record for record in header["records"]}
    observations = []
    for scenario in scenarios(scope, set(header["accepted"]) & set(KEYWORDS)):
        record, name = records[scenario.name], scenario.name
        ends, steps, rates = (arrays[f"{name}/{key}"] for key in ("ends", "steps", "rates"))
        width = problem(scenario).start.size
        numbers = [*(record[key] for key in COUNTS), *record["updates"]]
        if ends.shape != (EPOCHS, width) or steps.shape[1:] != (width,) or rates.shape != steps.shape[:1]:
            raise ValueError(f"shapes in {name}")
        if len(record["updates"]) != EPOCHS or not all(isinstance(number, (int, float)) for number in numbers):
            raise ValueError(f"counts in {name}")
        observations.append(Observation(scenario, ends, steps, rates, record))
    return observations


def signal_name(number: int) -> str:
    """SIGSEGV for 11, and the number where there is no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)

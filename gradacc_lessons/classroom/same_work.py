"""Which of several files counts: one learner's last one, and of two with the same work the one whose numbers fit."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import islice

from gradacc_lessons.classroom.inbox import shown
from gradacc_lessons.classroom.journal import Entry
from gradacc_lessons.classroom.results import Remark, Status
from gradacc_lessons.text import Text

SAME_WORK = "same_work"
"""The id of the note on a file whose answers are in another one too, where nothing shows whose they are."""
MOST_NAMED = 5
"""Files that a note names; of a thousand, a thousand notes would each hold a thousand names."""
Verdicts = dict[str, tuple[Status, Remark]]
"""By the file's name: what it is instead of graded, and why."""


def compared(entries: Mapping[str, Entry]) -> tuple[Verdicts, dict[str, Remark]]:
    """The files that do not count because of another one, and notes on those that do and are worth a look."""
    by_work, by_learner = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for name in sorted(entries):
        if entries[name].learner is not None and entries[name].work:
            by_work[entries[name].work].append(name)
    verdicts: Verdicts = {}
    notes: dict[str, Remark] = {}
    for names in by_work.values():
        _same_work(names, entries, verdicts, notes)
    for name in sorted(entries):
        if (learner := entries[name].learner) is not None and name not in verdicts:
            by_learner[learner].append(name)
    for names in by_learner.values():
        _same_learner(names, entries, verdicts)
    return verdicts, notes


def _same_work(names: list[str], entries: Mapping[str, Entry], verdicts: Verdicts, notes: dict[str, Remark]) -> None:
    """Answers are given at a thousandth of a second: the same ones under two names are one learner's.

    Each learner has numbers of their own, so the work is that learner's whose numbers it fits best.
    """
    if len({entries[name].learner for name in names}) < 2:
        return
    best = max(entries[name].fits for name in names)
    fitting = [name for name in names if entries[name].fits == best]
    owners = {entries[name].learner for name in fitting}
    if len(owners) > 1:
        notes.update((name, _whose(name, names)) for name in names)
    else:
        copies = [name for name in names if entries[name].learner not in owners]
        verdicts.update(dict.fromkeys(copies, ("copied", _copied(fitting[0]))))


def _whose(name: str, names: list[str]) -> Remark:
    """Of a whole class with the same answers only a few are named."""
    others = ", ".join(shown(each) for each in islice((each for each in names if each != name), MOST_NAMED))
    more = len(names) - 1 - MOST_NAMED
    en, nl = (f"{others} and {more} more", f"{others} en nog {more}") if more > 0 else (others, others)
    return Remark(
        SAME_WORK,
        Text(
            f"The same answers, given at the same moments, are in {en}, and nothing shows whose they are.",
            f"Dezelfde antwoorden, op dezelfde momenten gegeven, staan in {nl}, en niets laat zien van wie ze zijn.",
        ),
    )


def _same_learner(names: list[str], entries: Mapping[str, Entry], verdicts: Verdicts) -> None:
    """Of one learner's files the last counts; the same file again is a copy, whoever handed it in."""
    last = max(names, key=lambda name: (entries[name].written, entries[name].checksum))
    last = next(name for name in names if entries[name].checksum == entries[last].checksum)
    for name in names:
        if name == last:
            continue
        same = entries[name].checksum == entries[last].checksum
        verdicts[name] = ("copied", _copied(last)) if same else ("superseded", _superseded(last, entries[last].written))


def _superseded(name: str, written: str) -> Remark:
    """The times are those of the learner's clock, which may be wrong: the teacher sees them."""
    when = written[:16].replace("T", " ")
    return Remark(
        "superseded",
        Text(
            f"The same learner wrote {shown(name)} later ({when}), and that counts.",
            f"Dezelfde leerling schreef later ({when}) {shown(name)}, en dat telt.",
        ),
    )


def _copied(name: str) -> Remark:
    return Remark(
        "copied",
        Text(
            f"It holds the same work as {shown(name)}, which is graded.",
            f"Er staat hetzelfde werk in als in {shown(name)}, en dat is nagekeken.",
        ),
    )

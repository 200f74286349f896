"""What an examination says: for each cause what it means here, and what to do."""

from collections.abc import Sequence
from typing import Any

from gradacc_lessons.detective.examination.findings import CAUSES, Findings
from gradacc_lessons.detective.examination.sentences import MEANINGS, NOTES, REMEDIES, SEEN, VERDICTS
from gradacc_lessons.detective.examination.weights import as_ratio
from gradacc_lessons.detective.wording import filled
from gradacc_lessons.text import Text, joined

MOST_NAMES = 3
"""Modules or buffers that are named; of the others their number is told."""


def causes_of(findings: Findings) -> tuple[str, ...]:
    """The ids, in their order."""
    return tuple(cause for cause in CAUSES if cause in findings.causes)


def message(findings: Findings, number: int, counted: bool) -> Text:
    """A paragraph for the verdict, and one for each cause: what it means here and what to do."""
    parts = [_verdict(findings, number, counted)]
    parts += [joined([_meaning(cause, findings), _remedy(cause, findings)]) for cause in causes_of(findings)]
    seen = findings.evidence
    parts += [filled(note, **{key: seen[key]}) for key, note in NOTES.items() if seen.get(key)]
    return joined(parts, "\n")


def remedies(findings: Findings) -> tuple[Text, ...]:
    """What to do, a sentence or two for each cause."""
    return tuple(_remedy(cause, findings) for cause in causes_of(findings))


def _remedy(cause: str, findings: Findings) -> Text:
    if cause == "loss_not_additive" and "scaled" in findings.evidence:
        return REMEDIES["scaled"]
    if cause == "unknown" and "gradient_hooks" in findings.evidence:
        return REMEDIES["gradient_hooks"]
    if cause == "batch_statistics" and findings.evidence.get("batch_first"):
        return REMEDIES["batch_first"]
    return REMEDIES["state_touches" if cause == "module_state" and cause in findings.touching else cause]


def _verdict(findings: Findings, number: int, counted: bool) -> Text:
    if findings.touching:
        way = "elsewhere" if findings.evidence.get("elsewhere") else "wrong"
        return filled(VERDICTS[way], number=number, error=_percent(findings.relative_error))
    if all(weight == 1 for weight in findings.weights):
        return filled(VERDICTS["sum"], number=number)
    return filled(VERDICTS["counted" if counted else "expected"], number=number)


def _meaning(cause: str, findings: Findings) -> Text:
    return _TELL[cause](findings) if cause in _TELL else MEANINGS[cause]


def _statistics(findings: Findings) -> Text:
    seen = findings.evidence
    names = [
        Text(f"{name} ({kind})", f"{name} ({kind})") if name else filled(SEEN["own forward"], kind=kind)
        for name, kind in zip(seen["modules"], seen["kinds"], strict=True)
    ]
    way = "batch_statistics_backward" if seen.get("backward") else "batch_statistics"
    meaning = filled(MEANINGS[way], modules=_some(names))
    return joined([meaning, SEEN["batch_first"]]) if seen.get("batch_first") else meaning


def _randomness(findings: Findings) -> Text:
    seen = findings.evidence
    more = [SEEN[key] for key in ("seeded_within", "unrepeated", "unmatched") if seen.get(key)]
    return joined([MEANINGS["randomness"], *more])


def _loss(findings: Findings) -> Text:
    if (weights := findings.evidence.get("scaled")) is None:
        return MEANINGS["loss_not_additive"]
    return filled(SEEN["scaled"], weights=", ".join(f"{weight:.3g}" for weight in weights))


def _items(findings: Findings) -> Text:
    seen = findings.evidence
    parts = [filled(MEANINGS["unequal_items"], weights=weights_in_words(seen["item_weights"]))]
    if (given := seen.get("count_weights")) is not None:
        parts.append(filled(SEEN["count given"], weights=weights_in_words(given)))
    if (counted := seen.get("counted")) is not None:
        parts.append(filled(SEEN["counted"], what=counted))
    return joined(parts)


def _unknown(findings: Findings) -> Text:
    if (names := findings.evidence.get("gradient_hooks")) is None:
        return MEANINGS["unknown"]
    return filled(SEEN["gradient_hooks"], names=_some([Text(name, name) for name in names]))


def _state(findings: Findings) -> Text:
    seen = findings.evidence
    state = _some([Text(name, name) for name in seen["state"]])
    touches = "module_state" in findings.touching
    parts = [filled(MEANINGS["state_touches" if touches else "module_state"], state=state)]
    if (error := seen.get("stops")) is not None:
        parts.append(filled(SEEN["stops"], error=error))
    return joined(parts)


_TELL = {
    "batch_statistics": _statistics,
    "randomness": _randomness,
    "loss_not_additive": _loss,
    "unequal_items": _items,
    "module_state": _state,
    "unknown": _unknown,
}


def weights_in_words(weights: Sequence[float]) -> str:
    """3 : 10 : 50 where they are such, else 0.21, 0.34, 0.45."""
    ratio = as_ratio(weights)
    return " : ".join(map(str, ratio)) if ratio else ", ".join(f"{weight:.3g}" for weight in weights)


def _percent(share: float) -> str:
    percent = 100 * share
    return f"{percent:.2g}" if percent < 10 else f"{percent:,.0f}"


def _some(names: Sequence[Text]) -> Text:
    """The first of them, and how many more there are."""
    told = joined(names[:MOST_NAMES], ", ")
    more: Any = len(names) - MOST_NAMES
    return filled(SEEN["more"], names=told, more=more) if more > 0 else told

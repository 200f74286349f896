"""The picture of a tape: a lane for each kind of event over the micro-batches, windows shaded."""

from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gradacc_lessons.detective.tape.events import Event, Kind
from gradacc_lessons.detective.tape.view import Finding
from gradacc_lessons.detective.tape.windows import Window
from gradacc_lessons.detective.tape.wording import LANES, PICTURE
from gradacc_lessons.detective.wording import filled
from gradacc_lessons.palette import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, WRONG, YELLOW
from gradacc_lessons.text import Language

MOST = 40
"""More micro-batches than this are too narrow to see; the first ones are drawn."""
ALWAYS: tuple[Kind, ...] = ("forward", "backward", "update", "zero_grad")
STYLE: dict[Kind, tuple[str, str]] = {
    "evaluation": (GREY, "s"),
    "unscale": (PURPLE, "v"),
    "clip": (ORANGE, "d"),
    "gradient": (BLACK, "P"),
    "update": (GREEN, "^"),
    "schedule": (YELLOW, ">"),
    "zero_grad": (BLACK, "o"),
    "parameters": (ORANGE, "X"),
    "buffers": (GREY, "."),
    "watched": (PURPLE, "h"),
    "all_reduce": (BLUE, "*"),
}
"""Colour and marker of each kind that is drawn as a point."""
LANE_ORDER: tuple[Kind, ...] = ("forward", "backward", *(kind for kind in STYLE if kind != "evaluation"), "evaluation")
GROUNDS = ("#FFFFFF", "#ECECEC")
BAR = 0.56
"""The height of a bar, and the length of the longest, in lanes and in micro-batches."""
AFTER = (0.2, 0.38)
"""Where in the room of a micro-batch the points are that come after its backward."""
WITHIN = -0.14
"""Where those are that come within its forward."""


def picture(windows: Sequence[Window], findings: Sequence[Finding], language: Language) -> Figure:
    """Bars for forward and backward, as long as they have items; points for everything else, in their order."""
    events = [event for window in windows for event in window.events if (event.micro_batch or 0) <= MOST]
    kinds = {event.kind for event in events} | set(ALWAYS)
    lanes = {kind: place for place, kind in enumerate(kind for kind in LANE_ORDER if kind in kinds)}
    last = max((event.micro_batch or 0 for event in events), default=0)
    width = min(max(4.5, 2 + 0.42 * last), 14)
    figure = Figure(figsize=(width, 1.1 + 0.36 * len(lanes)), dpi=100, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    _shade(ax, [window for window in windows if _numbers(window) and _numbers(window)[0] <= MOST], findings, language)
    _bars(ax, lanes, windows, events)
    for kind, xs in _points(events):
        colour, marker = STYLE[kind]
        ax.plot(xs, [lanes[kind]] * len(xs), marker, color=colour, markersize=7, linestyle="none", zorder=3)
    ax.set_yticks(list(lanes.values()), [LANES[kind].to(language) for kind in lanes])
    ax.set_ylim(len(lanes) - 0.5, -0.5)
    ax.set_xlim(0.5, max(last, 1) + 0.5)
    ax.set_xticks([number for number in range(1, last + 1) if last <= 20 or number % 5 == 0])
    ax.set_xlabel(PICTURE["axis"].to(language))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ran = max((event.micro_batch or 0 for window in windows for event in window.events), default=0)
    title = PICTURE["title" if ran <= MOST else "beginning"]
    ax.set_title(filled(title, first=MOST, ran=ran).to(language), loc="left", fontsize=11, pad=22)
    return figure


def _numbers(window: Window) -> list[int]:
    return sorted({event.micro_batch or 0 for event in window.events if event.kind == "backward"})


def _shade(ax: Any, windows: Sequence[Window], findings: Sequence[Finding], language: Language) -> None:
    """A ground for each window, with what it applies above it; orange and hatched where something was found."""
    wrong = {number for finding in findings for number in finding.windows}
    for place, window in enumerate(windows):
        numbers = _numbers(window)
        left, right = numbers[0] - 0.5, min(numbers[-1], MOST) + 0.5
        ax.axvspan(left, right, facecolor=GROUNDS[place % 2], zorder=0, linewidth=0)
        label = PICTURE[window.outcome].to(language).format(number=window.number, count=len(window.micro_batches))
        bad = window.number in wrong
        if bad:
            ax.axvspan(left, right, facecolor="none", edgecolor=WRONG, alpha=0.35, hatch="//", zorder=0.5, linewidth=0)
        room = right - left
        applied = str(len(window.micro_batches)) if window.outcome == "updated" else "0"
        ax.text(
            (left + right) / 2, 1.01, label if room >= 3 else applied,
            transform=ax.get_xaxis_transform(), ha="center", va="bottom", fontsize=8, color=WRONG if bad else GREY,
        )  # fmt: skip


def _bars(ax: Any, lanes: dict[Kind, int], windows: Sequence[Window], events: Sequence[Event]) -> None:
    most = max((event.items for event in events if event.items), default=1)
    unused = [window.fresh for window in windows if window.outcome == "open"]
    lost = {number for numbers in (*unused, *(window.lost for window in windows)) for number in numbers}
    rows: dict[tuple[Kind, bool], list[tuple[float, float]]] = {}
    for event in events:
        if event.kind not in ("forward", "backward") or event.again or event.micro_batch is None:
            continue
        length = BAR * (event.items / most if event.items else 1)
        gone = event.kind == "backward" and event.micro_batch in lost
        rows.setdefault((event.kind, gone), []).append((event.micro_batch - 0.42, length))
    for (kind, gone), bars in rows.items():  # a call for each kind: one for each bar takes ten times as long
        lefts, lengths = zip(*bars, strict=True)
        colour = BLUE if kind == "forward" else GREEN
        ax.barh(
            [lanes[kind]] * len(bars), lengths, height=BAR, left=lefts, zorder=2, linewidth=1.2,
            facecolor="white" if gone else colour, edgecolor=colour, linestyle=":" if gone else "-",
        )  # fmt: skip


def _points(events: Sequence[Event]) -> Iterator[tuple[Kind, list[float]]]:
    """For each kind the places of its points: those of one micro-batch side by side, in their order."""
    by_place: dict[int, list[Event]] = {}
    found: dict[Kind, list[float]] = {}
    for event in events:
        number = event.micro_batch or 0
        if event.during == "forward" and event.kind in STYLE:
            found.setdefault(event.kind, []).append(number + WITHIN)
        elif event.kind in STYLE:
            by_place.setdefault(number, []).append(event)
    for number, ordered in by_place.items():
        for place, event in enumerate(ordered):
            share = place / (len(ordered) - 1) if len(ordered) > 1 else 0.5
            x = number + AFTER[0] + (AFTER[1] - AFTER[0]) * share
            found.setdefault(event.kind, []).append(max(x, 0.56))
    yield from found.items()

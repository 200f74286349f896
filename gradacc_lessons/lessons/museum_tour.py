"""Lesson 09: a visit to one exhibit. Its own number falls to the fixed one, and b and N move what the bug does."""

from collections.abc import Iterator
from textwrap import fill
from typing import Any, ClassVar

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from gradacc_lessons import palette
from gradacc_lessons.lessons.museum_runs import SHOWS, check_possible, differences, numbers
from gradacc_lessons.lessons.timeline import TapeFigure
from gradacc_lessons.lessons.two_panels import TwoPanels
from gradacc_lessons.museum.collection import exhibit, exhibits
from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import TapeExhibit
from gradacc_lessons.museum.telling import number_in_words
from gradacc_lessons.ui import Choice, Explorer, NumberSlider, Run, StaticTwin
from gradacc_lessons.ui.static import picture_html

LINE = 46
"""Characters on a line of a title."""
HEADROOM = 1.3
LEAST_AXIS = 1.0
"""Percent: an axis over nothing but rounding still has a length."""


def tour(name: str, micro_batch_size: int, accumulation_steps: int) -> Iterator[dict[str, Any]]:
    """The rows of `differences`, each with the exhibit's own `with_bug` and `after_fix`, and what was chosen."""
    own = numbers(name)
    chosen = {"name": name, "micro_batch_size": micro_batch_size, "accumulation_steps": accumulation_steps}
    for row in differences(name, micro_batch_size, accumulation_steps):
        yield chosen | row | {"with_bug": own["bug"], "after_fix": own["fixed"]}


def in_percent(share: float) -> str:
    """A share in words.

    >>> in_percent(2.711), in_percent(0.0312)
    ('271 %', '3.1 %')
    """
    percent = 100 * share
    return f"{percent:.0f} %" if percent >= 9.5 else f"{percent:.2g} %"


class TourFigure(TwoPanels):
    """Left: the exhibit's number. Right: what the bug does with this b and N."""

    description: ClassVar[str] = (
        "Two panels. Left: the exhibit's own number, an orange disc with the bug and a blue ring after the fix, each "
        "with its value. Right, for a bug in a loop: how far the run with the bug is from the fixed one, in percent of "
        "the way that the fixed one goes, over the micro-batches that have been run; for a bug in a model or a loss: "
        "how far the gradient of micro-batches is from that of the whole batch, in percent, over their size."
    )
    arrangement: ClassVar[dict[str, Any]] = {"width_ratios": (3, 4)}

    def draw_left(self, ax: Axes) -> None:
        """The number."""
        self._number = ax
        ax.set_yticks([1, 0], ["with the bug", "after the fix"])
        ax.set_ylim(-0.7, 1.7)
        ax.xaxis.set_major_locator(MaxNLocator(4))
        (self._bug,) = ax.plot([], [], "o", color=palette.WRONG, ms=13, clip_on=False)
        (self._fixed,) = ax.plot([], [], "o", mfc="none", mec=palette.RIGHT, ms=13, mew=2.2, clip_on=False)
        self._values = [ax.text(0, 0, "", fontsize=11, color=palette.BLACK, ha="center") for _ in range(2)]
        self.moves(self._bug, self._fixed, *self._values)

    def draw_right(self, ax: Axes) -> None:
        """The difference."""
        self._plane = ax
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        (self._got,) = ax.plot([], [], "o-", color=palette.WRONG, ms=4, lw=1.6, label="with the bug")
        (self._right,) = ax.plot([], [], "--", color=palette.RIGHT, lw=2, label="after the fix")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=9, frameon=False)
        self.moves(self._got, self._right)

    def update(self, data: pd.DataFrame) -> str:
        """Move both."""
        last = data.iloc[-1]
        self._name_axes(last["name"])
        both = (last["with_bug"], last["after_fix"])
        self._bug.set_data([both[0]], [1])
        self._fixed.set_data([both[1]], [0])
        for words, number, y in zip(self._values, both, (1.2, 0.2), strict=True):
            words.set_text(number_in_words(number))
            words.set_position((number, y))
        most = max(map(abs, both))
        self.set_limits(self._number, x=(-0.12 * most, HEADROOM * most))
        percent = 100 * data[["bug", "fixed"]]
        self._got.set_data(data["position"], percent["bug"])
        self._right.set_data(data["position"], percent["fixed"])
        top = max(LEAST_AXIS, HEADROOM * float(percent.max().max()))
        end = float(data["position"].max())
        self.set_limits(self._plane, x=(0.0, max(end, 1.0) * 1.03), y=(-0.04 * top, top))
        return tour_sentence(data)

    def _name_axes(self, name: str) -> None:
        title = fill(exhibit(name).number_name.en, LINE)
        if self._number.get_title() == title:
            return
        self._number.set_title(title, fontsize=9)
        of_gradients = exhibit(name).instrument == "examine"
        self._plane.set(
            xlabel="examples in a micro-batch" if of_gradients else "micro-batches run",
            ylabel=(
                "distance from the whole batch's gradient (%)"
                if of_gradients
                else "distance from the fixed run\n(% of the way that it goes)"
            ),
        )
        self.new_ground()


def tour_sentence(data: pd.DataFrame) -> str:
    """What there is to see at this exhibit."""
    last = data.iloc[-1]
    one = exhibit(last["name"])
    bug, fixed = (number_in_words(last[name]) for name in ("with_bug", "after_fix"))
    return (
        f"{one.project}, {one.year}: {one.title.en}. What gives it away: {one.number_name.en}. It is {bug} with the "
        f"bug and {fixed} after the fix. With b = {last['micro_batch_size']} and N = {last['accumulation_steps']} "
        f"{_what_it_does(data)}"
    )


def _what_it_does(data: pd.DataFrame) -> str:
    last = data.iloc[-1]
    shows, percent = last["bug"] > SHOWS, in_percent(last["bug"])
    if exhibit(last["name"]).instrument == "examine":
        if not shows:
            return "the micro-batches' gradient is that of the whole batch."
        return f"the micro-batches' gradient is {percent} away from that of the whole batch."
    if not shows:
        return "the two runs end with the same weights."
    return f"the run with the bug ends {percent} away from the fixed one, of the way that that one goes."


def tour_table(data: pd.DataFrame) -> pd.DataFrame:
    """The exhibit's label: what it is, its number, and what the bug does here."""
    last = data.iloc[-1]
    one = exhibit(last["name"])
    rows = [
        ("number with the bug", number_in_words(last["with_bug"])),
        ("number after the fix", number_in_words(last["after_fix"])),
        ("found by", one.instrument),
        ("explained in", f"lesson {one.lesson[:2]}"),
        ("thread", one.thread),
    ]
    return pd.DataFrame(rows, columns=["of the exhibit", one.id])


def explore_exhibit(name: str = "nanogpt-168") -> Explorer:
    """A list of the exhibits, and sliders for b and N."""

    def plan(name: str, micro_batch_size: int, accumulation_steps: int) -> Run:
        check_possible(name, micro_batch_size, accumulation_steps)
        return Run(lambda: tour(name, micro_batch_size, accumulation_steps), 1, "run")

    labels = [(f"{one.project} ({one.year}): {one.title.en}", key) for key, one in exhibits().items()]
    controls = [
        Choice("name", "Exhibit", labels, name),
        NumberSlider("micro_batch_size", "Micro-batch size b", 1, 16, 8),
        NumberSlider("accumulation_steps", "Accumulation steps N", 1, 16, 4),
    ]
    return Explorer(controls, plan, TourFigure, tour_table)


def timeline(name: str, kind: Kind) -> StaticTwin:
    """The tape of an exhibit that `trace` finds: its picture, its sentence, and what it found.

    ValueError for an exhibit of another instrument.
    """
    one = exhibit(name)
    if not isinstance(one, TapeExhibit):
        raise ValueError(f"{name} has no tape: it is found by {one.instrument}")
    tape, figure = one.inspect(kind), TapeFigure()
    figure.take(tape)
    found = [(finding.title.en, finding.said.en) for finding in tape.findings] or [("nothing", "")]
    sentence = f"{one.project}, {'with the bug' if kind == 'bug' else 'after the fix'}: {tape.sentence}"
    return StaticTwin(picture_html(figure, sentence), sentence, pd.DataFrame(found, columns=["found", "in its words"]))

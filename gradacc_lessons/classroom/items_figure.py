"""The picture of an item analysis: what was right, the commonest mistake, and how well a question discriminates."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import pandas as pd
from matplotlib.axes import Axes

from gradacc_lessons import palette
from gradacc_lessons.classroom.items import COMMON, LOW
from gradacc_lessons.quiz.grade import fill
from gradacc_lessons.text import Language, Text, joined
from gradacc_lessons.ui.figure import LiveFigure

PER_QUESTION, BESIDE = 38, 150
"""Height in pixels: for each question, and for what stands above and below them."""
LONGEST = 26
"""Characters of a name on the axis; the table beside the picture has it whole."""
LIGHT = "#C9C9C9"
EASY = 0.9
"""Where nearly everybody is right there is little to tell apart: such a question is not held against its wording."""
TITLES = Text("First answers", "Eerste antwoorden"), Text("Discrimination", "Onderscheidend vermogen")
SHARES = Text("Learners who answered (%)", "Leerlingen die antwoordden (%)")
CORRELATION = fill(Text("Correlation (dashed: {low})", "Correlatie (streepjes: {low})"), {"low": LOW})
RIGHT = Text("right", "goed")
COMMONEST = Text("the commonest mistake", "de meest gemaakte fout")
OTHER = Text("anything else", "iets anders")
DESCRIPTION = Text(
    "Two panels with a row for each question. Left: a bar of the learners who answered, split into right (plain blue), "
    "the commonest mistake (hatched orange, named in it) and anything else (grey). Right: a dot for the correlation of "
    "the question with the rest of the quiz; a cross where it is low.",
    "Twee vlakken met een rij voor elke vraag. Links: een balk van de leerlingen die antwoordden, verdeeld in goed "
    "(effen blauw), de meest gemaakte fout (gearceerd oranje, met de naam erin) en iets anders (grijs). Rechts: een "
    "stip voor de correlatie van de vraag met de rest van de quiz; een kruis waar die laag is.",
)
"""The picture in words, for whoever cannot see it."""


class ItemsFigure(LiveFigure):
    """Left: bars of right answers, the commonest mistake and the others. Right: discrimination, a dot a question.

    It draws the `items` of one lesson's ItemAnalysis.
    """

    description: ClassVar[str] = DESCRIPTION.en
    width, height = 1000, 640

    def __init__(self, language: Language = "en") -> None:
        super().__init__()
        self.language = language

    def draw(self, data: pd.DataFrame) -> str:
        """Build the figure for the items of one lesson; returns the sentence that says what it shows."""
        self.height = BESIDE + PER_QUESTION * max(len(data), 2)
        shares, discrimination = self.new_axes(1, 2, sharey=True, width_ratios=[2.6, 1])
        self._draw_shares(shares, data)
        self._draw_discrimination(discrimination, data)
        return sentence(data).to(self.language)

    def update(self, data: pd.DataFrame) -> str:
        """Draw anew: nothing moves in it."""
        return self.draw(data)

    def _draw_shares(self, ax: Axes, data: pd.DataFrame) -> None:
        rows, to = range(len(data)), self.language
        right, mistake = 100 * data["right"], 100 * data["mistake_share"].clip(upper=1 - data["right"])
        style: dict[str, Any] = {"height": 0.72, "edgecolor": "white"}
        ax.barh(rows, right, color=palette.RIGHT, label=RIGHT.to(to), **style)
        ax.barh(rows, mistake, left=right, color=palette.YELLOW, hatch="///", label=COMMONEST.to(to), **style)
        ax.barh(rows, 100 - right - mistake, left=right + mistake, color=LIGHT, label=OTHER.to(to), **style)
        for row, (name, share) in enumerate(zip(data["mistake"], data["mistake_share"], strict=True)):
            if share >= COMMON:
                ax.text(
                    right.iloc[row] + mistake.iloc[row] / 2, row, _short(name), ha="center", va="center", fontsize=8.5,
                    color="black",
                    bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
                )  # fmt: skip
        ax.set_yticks(rows, [_short(name) for name in data["question"]], fontsize=9)
        ax.set_xlim(0, 100)
        ax.set_xlabel(SHARES.to(to))
        ax.set_title(TITLES[0].to(to), loc="left", fontsize=11)
        ax.legend(loc="lower left", bbox_to_anchor=(0.25, 1.0), ncols=3, frameon=False, fontsize=9)
        ax.set_ylim(len(data) - 0.45, -0.55)

    def _draw_discrimination(self, ax: Axes, data: pd.DataFrame) -> None:
        low = data["discrimination"] < LOW
        for chosen, marker, color in ((~low, "o", palette.RIGHT), (low, "X", palette.ORANGE)):
            at = [row for row, (is_chosen, value) in enumerate(zip(chosen, data["discrimination"], strict=True))
                  if is_chosen and not math.isnan(value)]  # fmt: skip
            ax.plot(data["discrimination"].iloc[at], at, marker, color=color, markersize=8)
        ax.axvline(LOW, color=palette.GREY, linestyle="--", linewidth=1)
        ax.axvline(0, color=palette.BLACK, linewidth=0.8)
        ax.set_xlim(-1, 1)
        ax.set_xlabel(CORRELATION.to(self.language))
        ax.set_title(TITLES[1].to(self.language), loc="left", fontsize=11)
        ax.tick_params(labelleft=False)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def sentence(items: pd.DataFrame) -> Text:
    """What the picture says, in words."""
    if items.empty:
        return Text("Nobody has answered.", "Niemand heeft geantwoord.")
    most, hardest = int(items["n"].max()), items.iloc[int(items["difficulty"].argmin())]
    first = Text(
        f"Learners: {most}. Questions: {len(items)}. The hardest is {hardest['question']}: "
        f"{hardest['difficulty']:.0%} of its points.",
        f"Leerlingen: {most}. Vragen: {len(items)}. De moeilijkste is {hardest['question']}: "
        f"{hardest['difficulty']:.0%} van de punten.",
    )
    return joined([first, *_about_mistakes(items), *_about_wording(items)])


def _about_mistakes(items: pd.DataFrame) -> Iterator[Text]:
    common = items[items["mistake_share"] >= COMMON].sort_values("mistake_share", ascending=False).head(3)
    listed = ", ".join(f"{row.mistake} ({row.mistake_share:.0%}, {row.question})" for row in common.itertuples())
    if len(common) == 1:
        yield Text(f"The commonest mistake is {listed}.", f"De meest gemaakte fout is {listed}.")
    elif listed:
        yield Text(f"The commonest mistakes are {listed}.", f"De meest gemaakte fouten zijn {listed}.")


def _about_wording(items: pd.DataFrame) -> Iterator[Text]:
    names = ", ".join(items[(items["discrimination"] < LOW) & (items["difficulty"] < EASY)]["question"])
    if names:
        yield Text(
            f"Look at the wording of {names}: whoever knows the rest does not do clearly better there.",
            f"Kijk naar de formulering van {names}: wie de rest weet, doet het daar niet duidelijk beter.",
        )

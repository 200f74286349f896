"""The twin of an explorer that needs no kernel: picture, sentence and a small table.

For GitHub, for print, for screen readers, and for nbval, which compares the sentence and the table.
"""

import base64
import html
from dataclasses import dataclass

import pandas as pd

from gradacc_lessons.ui.figure import LiveFigure

FOLDED = "What it looks like (open it after your prediction)"
OPEN_IN_PRINT = (
    "<style>@media print { .gradacc-folded::details-content "
    "{ content-visibility: visible; block-size: auto; } }</style>"
)


@dataclass(frozen=True)
class StaticTwin:
    """What an explorer showed at the end of one run."""

    picture: str
    """The picture as an HTML `<img>` with alt text."""
    sentence: str
    """What the picture says, in words."""
    table: pd.DataFrame
    """A few rows with the numbers behind it."""
    folded: bool = False
    """Whether it is to be opened by who wants to see it: there is something to predict first."""

    def _repr_html_(self) -> str:
        page = f"{self.picture}<p>{html.escape(self.sentence)}</p>{Table(self.table)._repr_html_()}"
        if not self.folded:
            return page
        return f'{OPEN_IN_PRINT}<details class="gradacc-folded"><summary>{FOLDED}</summary>{page}</details>'

    def __repr__(self) -> str:
        return f"{self.sentence}\n\n{Table(self.table)!r}"


def picture_html(figure: LiveFigure, sentence: str, description: str | None = None) -> str:
    """The figure as `<img>`: sized, so that the page does not jump; with alt text, so that it can be heard.

    `description` stands in that text in place of the figure's own, on a page in another language.
    """
    data = base64.b64encode(figure.png()).decode()
    alt = html.escape(f"{description or figure.description} {sentence}", quote=True)
    size = f'width="{figure.width}" height="{figure.height}"'
    return f'<img alt="{alt}" {size} style="max-width:100%;height:auto" src="data:image/png;base64,{data}">'


@dataclass(frozen=True)
class Table:
    """A DataFrame without its index, which a screen reader meets as an empty heading; cells are escaped."""

    data: pd.DataFrame
    """What it shows."""

    def _repr_html_(self) -> str:
        return str(self.data.to_html(index=False, border=0, justify="left"))

    def __repr__(self) -> str:
        return str(self.data.to_string(index=False))

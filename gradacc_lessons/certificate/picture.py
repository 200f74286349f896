"""A certificate to hang up: A4, as SVG and as PNG, drawn from the credential and from nothing else."""

import io
import unicodedata
import warnings
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

import matplotlib
from matplotlib import ft2font
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text as Words

from gradacc_lessons.certificate import words
from gradacc_lessons.certificate.compact import compact
from gradacc_lessons.certificate.credential import Credential
from gradacc_lessons.certificate.fonts import MONO, families, not_shown
from gradacc_lessons.certificate.panel import DPI, NIGHT, PIXEL, Box, draw_code, draw_descent
from gradacc_lessons.palette import BLUE, GREY, ORANGE
from gradacc_lessons.text import Text

PAGE = (round(297 / PIXEL) * PIXEL, round(210 / PIXEL) * PIXEL)
"""A4 in millimetres, to the pixel."""
PANEL = Box(219, 0, PAGE[0] - 219, PAGE[1])
LEFT, WIDTH = 20.0, 182.0
"""Of the text, in millimetres."""
POINT = 25.4 / 72
"""Millimetres."""
INK = "#16202C"
MOST_IN_CODE = 2300
"""Characters of a QR code that a phone reads from paper; of what is longer, the code holds the id."""


def text_in_code(credential: Credential) -> str:
    """What the QR code says: the whole certificate or, of one that is too long for that, its id."""
    whole = compact(credential)
    return whole if len(whole) <= MOST_IN_CODE else credential.id


def notes(credential: Credential) -> list[Text]:
    """What the picture cannot show of the name, for whoever issues it; the certificate itself has it right."""
    found = []
    if lacking := not_shown(credential.name + credential.issuer_name):
        found.append(words.no_font(lacking))
    right_to_left = any(unicodedata.bidirectional(char) in ("R", "AL") for char in credential.name)
    if right_to_left and not hasattr(ft2font, "__libraqm_version__"):
        found.append(words.NO_SHAPING)
    return found


def svg(credential: Credential) -> bytes:
    """The picture as SVG, letters as outlines, with its words for who cannot see it."""
    stream = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": credential.id}):
        plain = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        _save(credential, stream, format="svg", metadata=plain)
    drawn = stream.getvalue()
    start = drawn.index("<svg")
    head, rest = drawn[start:].split(">", 1)
    said = escape(described(credential))
    title = f"<title>{escape(f'{credential.title}: {credential.name}')}</title>"
    lang = f' role="img" xml:lang="{credential.language}" lang="{credential.language}">'
    return f'<?xml version="1.0" encoding="utf-8"?>\n{head}{lang}\n{title}\n<desc>{said}</desc>{rest}'.encode()


def png(credential: Credential) -> bytes:
    """The picture as PNG, with 300 pixels in an inch."""
    stream = io.BytesIO()
    _save(credential, stream, format="png", dpi=DPI, metadata={"Software": None})
    return stream.getvalue()


def described(credential: Credential) -> str:
    """The picture in words, in its own language."""
    lessons = "; ".join(lesson.title for lesson in credential.lessons)
    return f"{words.awarded(credential)} {credential.name}. {words.passed(credential)} {lessons}. {credential.id}"


def as_html(credential: Credential) -> str:
    """The picture for a notebook's page."""
    source = b64encode(svg(credential)).decode("ascii")
    said = escape(described(credential), {'"': "&quot;"})
    return f'<img alt="{said}" src="data:image/svg+xml;base64,{source}" style="width:100%;max-width:1100px">'


@contextmanager
def _quietly() -> Iterator[None]:
    """Without a warning for each character that no font has: `notes` says so once."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")
        yield


def _save(credential: Credential, stream: io.StringIO | io.BytesIO, **how: Any) -> None:
    with _quietly():
        figure_of(credential).savefig(stream, **how)


def figure_of(credential: Credential) -> Figure:
    """The page as matplotlib draws it, in millimetres."""
    figure = Figure(figsize=(PAGE[0] / 25.4, PAGE[1] / 25.4), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, PAGE[0]), ylim=(0, PAGE[1]), autoscale_on=False)
    axes.set_axis_off()
    with _quietly():
        _draw_panel(axes, credential)
        page = _Page(axes)
        _draw_head(page, credential)
        _draw_lessons(page, credential)
        _draw_foot(page, credential)
    return figure


@dataclass(frozen=True)
class _Page:
    """Writes lines of text, and knows how wide they are."""

    axes: Axes

    def write(self, text: str, x: float, y: float, size: float, color: str = INK, **style: Any) -> Words:
        """A line that begins at x, on the base line y; `size` in points."""
        style.setdefault("family", families(text))
        return self.axes.text(x, y, text, fontsize=size, color=color, va="baseline", parse_math=False, **style)

    def width(self, written: Words) -> float:
        """In millimetres."""
        return float(written.get_window_extent().width) * PIXEL

    def fit(self, text: str, x: float, y: float, size: float, width: float, **style: Any) -> float:
        """A line that is made smaller until it fits in `width`; its size."""
        written = self.write(text, x, y, size, **style)
        size *= min(1.0, width / max(self.width(written), 1e-9))
        written.set_fontsize(size)
        return size

    def wrapped(self, text: str, size: float, width: float, **style: Any) -> list[str]:
        """The text in lines that fit in `width`; a word that does not fit is broken."""
        probe, lines, line = self.write("", 0, 0, size, **style), [], ""
        probe.set_fontfamily(style.get("family", families(text)))
        for word in text.split(" "):
            for piece in self._pieces(word, probe, width):
                probe.set_text(f"{line} {piece}".strip())
                if line and self.width(probe) > width:
                    lines.append(line)
                    line = piece
                else:
                    line = probe.get_text()
        probe.remove()
        return [*lines, line]

    def _pieces(self, word: str, probe: Words, width: float) -> list[str]:
        probe.set_text(word)
        parts = int(self.width(probe) / width) + 1
        length = -(-len(word) // parts)
        return [word[start : start + length] for start in range(0, len(word), length or 1)] or [""]


def _draw_panel(axes: Axes, credential: Credential) -> None:
    middle = PANEL.left + PANEL.width / 2
    draw_descent(axes, PANEL, (middle, 110), credential.id)
    text = text_in_code(credential)
    draw_code(axes, text, (middle, 40), 46)
    page = _Page(axes)
    page.write(words.IN_PANEL.to(credential.language), middle, 197, 8, "white", ha="center")
    for line, caption in enumerate(words.code_caption(text == credential.id).to(credential.language).split("\n")):
        page.write(caption, middle, 10.6 - 4 * line, 8, "white", ha="center")


def _draw_head(page: _Page, credential: Credential) -> None:
    language = credential.language
    spaced = "\u00a0".join(words.COURSE.to(language).upper())
    page.fit(spaced, LEFT, 186, 10, WIDTH, color=BLUE)
    page.fit(words.HEADINGS[credential.kind].to(language), LEFT, 166, 38, WIDTH, color=NIGHT)
    page.write(words.awarded(credential), LEFT, 149, 13, GREY, style="italic")
    lines, size = _name_in_lines(page, credential.name)
    band = Rectangle((0, 126), PANEL.left, 22, transform=page.axes.transData)
    for index, line in enumerate(lines):
        y = 130.5 + (len(lines) - 1 - index) * size * 1.15 * POINT
        page.fit(line, LEFT, y, size, WIDTH, clip_path=band)  # accents piled high cover nothing else
    page.axes.plot([LEFT, LEFT + WIDTH], [125, 125], color=ORANGE, lw=1.4)


def _name_in_lines(page: _Page, name: str) -> tuple[list[str], float]:
    """The name in one large line or in several small ones, and their size in points."""
    for size in (34.0, 30.0, 26.0, 22.0):
        lines = page.wrapped(name, size, WIDTH)
        if len(lines) == 1:
            return lines, size
    while len(lines) * size > 44:
        size -= 1
        lines = page.wrapped(name, size, WIDTH)
    return lines, size


def _draw_lessons(page: _Page, credential: Credential) -> None:
    for index, line in enumerate(page.wrapped(words.passed(credential), 12, WIDTH)):
        page.write(line, LEFT, 115 - 5.2 * index, 12)
    columns, rows = _columns(len(credential.lessons))
    pitch, width = min(7.0, 46 / rows), WIDTH / columns
    size = min(12.0, pitch / POINT / 1.25)
    for index, lesson in enumerate(credential.lessons):
        x, y = LEFT + index // rows * width, 98 - index % rows * pitch
        number = lesson.name[:2] if lesson.name[:2].isdigit() else "·"
        page.write(number, x, y, size, BLUE, weight="bold")
        page.fit(lesson.title, x + 0.62 * size, y, size, width - 0.62 * size - 4)


def _columns(lessons: int) -> tuple[int, int]:
    """Columns, and rows in each."""
    columns = 1 if lessons <= 5 else 2 if lessons <= 20 else -(-lessons // 12)
    return columns, -(-lessons // columns)


def _draw_foot(page: _Page, credential: Credential) -> None:
    facts = words.facts(credential)
    for index, (label, value) in enumerate(facts):
        x = LEFT + index * WIDTH / len(facts)
        page.fit(value, x, 39, 13, WIDTH / len(facts) - 5)
        page.write(label, x, 34, 8.5, GREY, style="italic")
    small = words.proves(credential.self_issued).to(credential.language)
    for index, line in enumerate(page.wrapped(small, 8, WIDTH)):
        page.write(line, LEFT, 26 - 3.6 * index, 8, GREY)
    page.fit(credential.id, LEFT, 10.6, 8, WIDTH, color=GREY, family=MONO)

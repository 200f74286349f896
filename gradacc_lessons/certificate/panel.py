"""The picture on a certificate: a loss as a bowl, and a descent whose every update is the sum of four micro-batches.

The path begins where the certificate's id says, and its micro-batches differ as the id says: each certificate has a
path of its own, and the same certificate always the same.
"""

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import segno
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse, FancyArrowPatch, PathPatch, Rectangle
from matplotlib.path import Path

NIGHT = "#0B2545"
"""The panel's ground."""
LINE = "#8DB4DD"
MICRO_BATCHES = ("#56B4E9", "#009E73", "#F0E442", "#E69F00")
"""Okabe and Ito's colours that stand out on the dark ground; the four micro-batches of a window."""
UPDATES = 3
RATES = np.array([0.62, 0.46])
"""The share of the way to the middle that an update covers, along the bowl's short and its long axis."""
AXES = np.array([22.0, 46.0])
"""Millimetres: the half axes of the bowl's ellipse for a loss of 1."""
TURN = 0.42
"""Radians by which the bowl is turned."""
LEVELS = np.linspace(0.16, 3.0, 27) ** 2
DPI = 300
"""Pixels in an inch of the PNG."""
PIXEL = 25.4 / DPI
"""Millimetres."""


@dataclass(frozen=True)
class Box:
    """A rectangle in millimetres from the lower left corner of the page."""

    left: float
    """Its left edge."""
    bottom: float
    """Its lower edge."""
    width: float
    """How wide."""
    height: float
    """How high."""


def draw_descent(axes: Axes, box: Box, centre: tuple[float, float], credential_id: str) -> None:
    """The panel's ground, the bowl around `centre`, and the descent."""
    ground = Rectangle((box.left, box.bottom), box.width, box.height, facecolor=NIGHT, linewidth=0)
    axes.add_patch(ground)
    for level in LEVELS:
        width, height = 2 * AXES * np.sqrt(level)
        fade = 0.75 - 0.6 * level / LEVELS[-1]
        ring = Ellipse(centre, width, height, angle=np.degrees(TURN), fill=False, color=LINE, lw=0.6, alpha=fade)
        axes.add_patch(ring)
        ring.set_clip_path(ground)
    for window in _windows(credential_id):
        ends = window + np.array(centre)
        scale = np.sqrt(np.hypot(*(ends[-1] - ends[0])) / 30)  # of a short arrow the head is small too
        axes.add_patch(_arrow(ends[0], ends[-1], "white", 2.6 * scale, 14 * scale))
        for start, end, color in zip(ends[:-1], ends[1:], MICRO_BATCHES, strict=True):
            axes.add_patch(_arrow(start, end, color, 1.8 * scale, 8 * scale))
    axes.plot(*centre, marker="o", markersize=3.2, color="white")


def _arrow(start: np.ndarray, end: np.ndarray, color: str, width: float, head: float) -> FancyArrowPatch:
    return FancyArrowPatch(
        tuple(start), tuple(end), arrowstyle="-|>", mutation_scale=head, color=color, lw=width,
        shrinkA=0, shrinkB=0, joinstyle="miter", capstyle="butt",
    )  # fmt: skip


def _windows(credential_id: str) -> list[np.ndarray]:
    """For each update the five points between which its four arrows run, around the bowl's lowest point."""
    numbers = np.frombuffer(sha256(credential_id.encode()).digest(), dtype=np.uint8) / 255
    turn = np.array([[np.cos(TURN), -np.sin(TURN)], [np.sin(TURN), np.cos(TURN)]])
    at, windows = np.array([0.95 + 0.4 * numbers[0], 1.4 + 0.2 * numbers[1]]) * AXES, []
    for update in range(UPDATES):
        # What a micro-batch's gradient differs from the mean by; the four differences add up to nothing.
        own = numbers[2 + 8 * update : 10 + 8 * update].reshape(4, 2) - 0.5
        parts = -RATES * at / 4 + (own - own.mean(axis=0)) * np.hypot(*(RATES * at)) * 0.55
        windows.append((at + np.vstack([[0, 0], np.cumsum(parts, axis=0)])) @ turn.T)
        at = at - RATES * at
    return windows


def draw_code(axes: Axes, text: str, centre: tuple[float, float], largest: float) -> Box:
    """The QR code of `text` on white, at most `largest` millimetres wide; the box that it fills.

    Its modules are whole pixels of the PNG, so that none is blurred.
    """
    code = segno.make(text, error="m", micro=False)
    side, quiet = code.symbol_size(border=0)[0], 4
    module = max(1, int(largest / PIXEL) // (side + 2 * quiet)) * PIXEL
    whole = module * (side + 2 * quiet)
    left, bottom = (round((middle - whole / 2) / PIXEL) * PIXEL for middle in centre)
    axes.add_patch(Rectangle((left, bottom), whole, whole, facecolor="white", lw=0, antialiased=False))
    corners, top = [], bottom + whole - quiet * module
    for row, line in enumerate(code.matrix):
        for column, dark in enumerate(line):
            if dark:
                x, y = left + (quiet + column) * module, top - row * module
                corners += [(x, y), (x + module, y), (x + module, y - module), (x, y - module), (x, y)]
    steps = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * (len(corners) // 5)
    modules = PathPatch(Path(corners, steps), facecolor="black", lw=0, antialiased=False, gid="code")
    axes.add_artist(modules)  # add_patch would look for the limits of thousands of squares
    return Box(left, bottom, whole, whole)

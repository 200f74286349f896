"""The picture of a memory profile: what was in use over time, stacked by what it was for."""

from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gradacc_lessons.memory.profile import CATEGORIES, MemoryProfile
from gradacc_lessons.memory.sizes import MEBIBYTE, readable
from gradacc_lessons.palette import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, YELLOW

COLOURS = dict(zip(CATEGORIES, (BLUE, GREEN, PURPLE, ORANGE, GREY, YELLOW), strict=True))
HATCHES = dict(zip(CATEGORIES, ("", "//", "..", "", "\\\\", "xx"), strict=True))
GROUNDS = {"forward": "#FFFFFF", "backward": "#ECECEC", "update": "#D2D2D2"}


def picture(profile: MemoryProfile) -> Figure:
    """Stacked areas over the operations; the ground is white in forward, grey in backward, darker in the update."""
    figure = Figure(figsize=(8, 4.2), dpi=100, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    time = profile.timeline
    areas = [time[name].to_numpy() / MEBIBYTE for name in CATEGORIES]
    phases = _phases(ax, list(time["phase"]))
    drawn = ax.stackplot(
        np.arange(len(time)),
        areas,
        labels=CATEGORIES,
        colors=[COLOURS[name] for name in CATEGORIES],
        step="post",
        linewidth=0,
    )
    for name, area in zip(CATEGORIES, drawn, strict=True):
        area.set_hatch(HATCHES[name])
        area.set_edgecolor("white")
    at = int(time["total"].to_numpy().argmax())
    ax.plot(at, time["total"].iloc[at] / MEBIBYTE, "v", color=BLACK, markersize=8, clip_on=False)
    ax.set_title(f"Peak: {readable(profile.peak_bytes)}, in the {profile.phase} phase", loc="left", fontsize=11)
    ax.set_xlabel("operations, in the order in which they ran")
    ax.set_ylabel("in use (MiB)")
    ax.set_xlim(0, max(len(time) - 1, 1))
    ax.set_ylim(0, float(time["total"].max()) / MEBIBYTE * 1.08)
    ax.spines[["top", "right"]].set_visible(False)
    entries, names = ax.get_legend_handles_labels()
    figure.legend([*entries[::-1], *phases], [*names[::-1], *GROUNDS], loc="outside right upper", frameon=False)
    return figure


def _phases(ax: Any, phases: list[str]) -> list[Any]:
    start = 0
    for phase, run in groupby(phases):
        end = start + sum(1 for _ in run)
        ax.axvspan(start, end, color=GROUNDS[phase], zorder=0, linewidth=0)
        start = end
    return [ax.axvspan(-2, -1, facecolor=ground, edgecolor=GREY, linewidth=0.6) for ground in GROUNDS.values()]

"""What explorers share: the live figure, the controls, the static twin and progress."""

from gradacc_lessons.text import counted
from gradacc_lessons.ui.controls import Choice, NumberSlider
from gradacc_lessons.ui.explorer import Explorer, Prediction
from gradacc_lessons.ui.figure import LiveFigure, step_up
from gradacc_lessons.ui.progress import progress
from gradacc_lessons.ui.static import StaticTwin, Table
from gradacc_lessons.ui.worker import Run

__all__ = [
    "Choice",
    "Explorer",
    "LiveFigure",
    "NumberSlider",
    "Prediction",
    "Run",
    "StaticTwin",
    "Table",
    "counted",
    "progress",
    "step_up",
]

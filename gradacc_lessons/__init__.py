"""Gradient accumulation, hands on: lessons, instruments and quizzes.

The names below are loaded when they are first used, so that `import gradacc_lessons` stays fast and does not
import torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradacc_lessons.accumulation import accumulate as accumulate
    from gradacc_lessons.certificate.certificate import Certificate as Certificate
    from gradacc_lessons.detective.diagnose import Diagnosis as Diagnosis
    from gradacc_lessons.detective.diagnose import diagnose as diagnose
    from gradacc_lessons.detective.examine import Examination as Examination
    from gradacc_lessons.detective.examine import examine as examine
    from gradacc_lessons.detective.trace import Tape as Tape
    from gradacc_lessons.detective.trace import trace as trace
    from gradacc_lessons.memory.measure import measure_peak as measure_peak
    from gradacc_lessons.memory.plan import Plan as Plan
    from gradacc_lessons.memory.plan import plan as plan
    from gradacc_lessons.memory.predict import predict_peak as predict_peak
    from gradacc_lessons.memory.profile import MemoryProfile as MemoryProfile
    from gradacc_lessons.quiz.quiz import Quiz as Quiz
    from gradacc_lessons.recipe import Recipe as Recipe

__version__ = "0.1.0"

_HOME_OF = {
    "Certificate": "gradacc_lessons.certificate.certificate",
    "Recipe": "gradacc_lessons.recipe",
    "accumulate": "gradacc_lessons.accumulation",
    "diagnose": "gradacc_lessons.detective.diagnose",
    "Diagnosis": "gradacc_lessons.detective.diagnose",
    "Examination": "gradacc_lessons.detective.examine",
    "examine": "gradacc_lessons.detective.examine",
    "MemoryProfile": "gradacc_lessons.memory.profile",
    "Plan": "gradacc_lessons.memory.plan",
    "measure_peak": "gradacc_lessons.memory.measure",
    "plan": "gradacc_lessons.memory.plan",
    "predict_peak": "gradacc_lessons.memory.predict",
    "Quiz": "gradacc_lessons.quiz.quiz",
    "Tape": "gradacc_lessons.detective.trace",
    "trace": "gradacc_lessons.detective.trace",
}

__all__ = [
    "Certificate",
    "Diagnosis",
    "Examination",
    "MemoryProfile",
    "Plan",
    "Quiz",
    "Recipe",
    "Tape",
    "accumulate",
    "diagnose",
    "examine",
    "measure_peak",
    "plan",
    "predict_peak",
    "trace",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"gradacc_lessons has no {name!r}; it offers {', '.join(__all__)}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

"""What an examination has found so far."""

from dataclasses import dataclass, field
from typing import Any

from gradacc_lessons.detective.examination.weights import Compared, Weights

CAUSES = (
    "batch_statistics", "randomness", "loss_not_additive", "unequal_items", "module_state", "low_precision", "unknown",
)  # fmt: skip
"""In the order in which they are told."""


@dataclass
class Findings:
    """Causes, and the comparison that people see."""

    causes: set[str] = field(default_factory=set)
    """Ids."""
    touching: set[str] = field(default_factory=set)
    """Those of them that change the gradient."""
    rows: list[Compared] = field(default_factory=list)
    """The gradient as people accumulate it, against the whole batch's, parameter by parameter."""
    relative_error: float = 0.0
    """Of all parameters together."""
    weights: Weights = ()
    """With which the micro-batches' gradients were added up for `rows`."""
    evidence: dict[str, Any] = field(default_factory=dict)
    """What was seen."""

    def add(self, cause: str, touches: bool = True, **evidence: Any) -> None:
        """One more cause, with what was seen of it."""
        self.causes.add(cause)
        if touches:
            self.touching.add(cause)
        self.evidence.update(evidence)

"""What a learner chooses about the training loop, and the arithmetic of batches that follows from it."""

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal, get_args

LossScaling = Literal["mean", "none", "twice", "running"]
OptimizerName = Literal["sgd", "momentum", "adam", "adamw", "adafactor"]
OptimizerKernel = Literal["default", "for-loop", "foreach", "fused"]
Precision = Literal["float32", "float64", "bfloat16", "autocast"]


@dataclass(frozen=True)
class Recipe:
    """One way to run the loop. Choices about the model belong to the Task, not here."""

    micro_batch_size: int = 8
    """b: how many examples one forward and backward sees."""
    accumulation_steps: int = 4
    """N: how many micro-batches are added up before one optimizer update."""
    loss_scaling: LossScaling = "mean"
    """What each micro-batch's mean loss is divided by: N ("mean", right), 1 ("none"), N*N ("twice"),
    the number of micro-batches so far ("running")."""
    optimizer: OptimizerName = "sgd"
    """Which torch optimizer makes the update; "momentum" is SGD with momentum 0.9."""
    learning_rate: float = 0.1
    """The optimizer's learning rate, per update."""
    optimizer_kernel: OptimizerKernel = "default"
    """How torch makes the update: parameter by parameter, all at once (foreach), in one fused kernel, or as it
    chooses by itself. The numbers are the same to rounding; the memory is not. adafactor has no fused kernel."""
    weight_decay: float = 0.0
    """The optimizer's own weight decay: coupled L2 for sgd, momentum and adam; decoupled for adamw and adafactor."""
    eps: float = 1e-8
    """The constant in the denominator of adam and adamw; the others do not use it."""
    max_norm: float | None = None
    """Clip the window's gradient to this norm before the update; None leaves it alone."""
    precision: Precision = "float32"
    """The dtype of parameters, data and gradients; "autocast" keeps the parameters in float32 and computes the
    forward's large products in bfloat16."""
    checkpointing: bool = False
    """Keep only the inputs of each block for backward, and compute what is inside again (activation
    checkpointing)."""
    set_to_none: bool = True
    """Whether zero_grad frees the gradients (torch's default) or keeps them and fills them with zeros."""
    seed: int = 0
    """Seeds the initial weights and the order of the data."""

    def __post_init__(self) -> None:
        _whole_and_positive("the micro-batch size", self.micro_batch_size)
        _whole_and_positive("the number of accumulation steps N", self.accumulation_steps)
        if isinstance(self.seed, bool) or not isinstance(self.seed, Integral) or not 0 <= self.seed < 2**63:
            raise ValueError(f"the seed must be a whole number from 0 to 2**63 - 1; it is {self.seed!r}")
        _one_of("loss scaling", self.loss_scaling, get_args(LossScaling))
        _one_of("optimizer", self.optimizer, get_args(OptimizerName))
        _one_of("optimizer kernel", self.optimizer_kernel, get_args(OptimizerKernel))
        if self.optimizer == "adafactor" and self.optimizer_kernel == "fused":
            raise ValueError("adafactor has no fused kernel: choose foreach or for-loop")
        _one_of("precision", self.precision, get_args(Precision))
        _finite("the learning rate", self.learning_rate, at_least=0.0)
        _finite("weight decay", self.weight_decay, at_least=0.0)
        _finite("eps", self.eps, at_least=0.0)
        for name in ("checkpointing", "set_to_none"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False; it is {getattr(self, name)!r}")
        if self.max_norm is not None and not (_is_number(self.max_norm) and self.max_norm > 0):
            raise ValueError(f"the clipping norm must be a number above 0, or None for none; it is {self.max_norm!r}")

    @property
    def effective_batch_size(self) -> int:
        """Examples behind one update: b x N."""
        return self.micro_batch_size * self.accumulation_steps

    def micro_batches_per_epoch(self, examples: int) -> int:
        """How many forwards and backwards one pass over `examples` takes; the last may be smaller."""
        return math.ceil(examples / self.micro_batch_size)

    def updates_per_epoch(self, examples: int) -> int:
        """How many optimizer updates one pass takes; the last window may be short, and counts."""
        return math.ceil(self.micro_batches_per_epoch(examples) / self.accumulation_steps)

    def divisor(self, position: int) -> int:
        """What the mean loss of micro-batch `position` (0-based) of a full window is divided by."""
        n = self.accumulation_steps
        return {"mean": n, "none": 1, "twice": n * n, "running": position + 1}[self.loss_scaling]

    def check_fits(self, examples: int) -> None:
        """ValueError, in one sentence, if a micro-batch or a window needs more than `examples` examples."""
        if self.micro_batch_size > examples:
            raise ValueError(
                f"a micro-batch of {self.micro_batch_size:,} is larger than the data, which has {examples:,} examples"
            )
        if self.effective_batch_size > examples:
            raise ValueError(
                f"{self.micro_batch_size} x {self.accumulation_steps} = {self.effective_batch_size:,} examples "
                f"per update, but the data has {examples:,}: choose a smaller micro-batch or a smaller N"
            )


def _whole_and_positive(what: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{what} must be a whole number of at least 1; it is {value!r}")


def _one_of(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{what} must be one of {', '.join(allowed)}; it is {value!r}")


def _is_number(value: object) -> bool:
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def _finite(what: str, value: float, *, at_least: float) -> None:
    if not (_is_number(value) and value >= at_least):
        raise ValueError(f"{what} must be a finite number of at least {at_least:g}; it is {value!r}")

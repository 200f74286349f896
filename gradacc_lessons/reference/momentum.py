"""The momentum with which N small moves of running statistics weigh what one move per window would."""

from torch import Tensor, nn


def corrected_momentum(momentum: float, accumulation_steps: int) -> float:
    """The momentum that, applied N times, weighs a window as `momentum` applied once does: 1 - (1 - m) ** (1 / N).

    ValueError unless `momentum` is between 0 and 1 and N is at least 1.
    """
    if not 0 <= momentum <= 1:
        raise ValueError(f"a momentum is a number from 0 to 1; it is {momentum!r}")
    if accumulation_steps < 1:
        raise ValueError(f"a window needs at least 1 micro-batch, not {accumulation_steps}")
    return float(1 - (1 - momentum) ** (1 / accumulation_steps))


def correct_momentum(model: nn.Module, accumulation_steps: int) -> int:
    """Correct every module that has a `running_mean` and a number as its `momentum`; returns how many there were.

    The momentum is the share of what is new, as in torch's own layers; in Keras it is the share that stays. Once,
    before training: a second call corrects what is corrected already. A momentum of None, a plain mean over all
    micro-batches, needs no correction. The running mean then follows the full batch's; the running variance is that
    of the micro-batches, and lacks what lies between their means.
    """
    corrected = 0
    for module in model.modules():
        momentum = getattr(module, "momentum", None)
        if isinstance(momentum, int | float) and isinstance(getattr(module, "running_mean", None), Tensor):
            module.momentum = corrected_momentum(momentum, accumulation_steps)  # type: ignore[assignment]
            corrected += 1
    return corrected

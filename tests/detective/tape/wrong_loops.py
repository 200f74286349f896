"""Loops with one mistake, as the ids of the findings that name them. Each gives back its tape."""

import torch
from detective.tape.bench import EPOCHS, N, Net, batches, cuts, net, taped
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from gradacc_lessons import Tape
from gradacc_lessons.accumulation import windows


def _loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


def _returned(model, batch):
    return model(batch[0], labels=batch[1])["loss"]


def _parts():
    model = net()
    return model, torch.optim.SGD(model.parameters(), 0.1), batches()


def tail_dropped() -> Tape:
    model, optimizer, data = _parts()
    with taped(model) as tape:
        for _ in range(EPOCHS):
            optimizer.zero_grad()
            for i, batch in enumerate(data):
                (_loss(model, batch) / N).backward()
                if (i + 1) % N == 0:
                    optimizer.step()
                    optimizer.zero_grad()
    return tape


def tail_dropped_in_one_epoch() -> Tape:
    model, optimizer, data = _parts()
    with taped(model) as tape:
        for i, batch in enumerate(data):
            (_loss(model, batch) / N).backward()
            if (i + 1) % N == 0:
                optimizer.step()
                optimizer.zero_grad()
    return tape


def tail_underscaled() -> Tape:
    model, optimizer, data = _parts()
    with taped(model) as tape:
        for _ in range(EPOCHS):
            for i, _, last in cuts():
                (_returned(model, data[i]) / N).backward()
                if last:
                    optimizer.step()
                    optimizer.zero_grad()
    return tape


def double_scale() -> Tape:
    model, optimizer, data = _parts()
    with taped(model) as tape:
        for i, window, last in cuts(8):
            (_returned(model, data[i]) / window / N).backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
    return tape


def running_scale() -> Tape:
    model, optimizer, data = _parts()
    with taped(model) as tape:
        for i, _, last in cuts(8):
            (_returned(model, data[i]) / (i % N + 1)).backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
    return tape


def accumulation_steps_ignored() -> Tape:
    model, optimizer, data = _parts()
    with taped(model) as tape:
        for window in windows([*data, *data], 2):
            optimizer.zero_grad()
            for batch in window:
                (_loss(model, batch) / 2).backward()
            optimizer.step()
    return tape


def windows_differ() -> Tape:
    model, optimizer, data = _parts()
    with taped(model) as tape:
        for length in (4, 3, 4, 5, 4):
            for batch in data[:length]:
                (_loss(model, batch) / length).backward()
            optimizer.step()
            optimizer.zero_grad()
    return tape


def update_without_gradient() -> Tape:
    model, optimizer, data = _parts()
    with taped(model) as tape:
        optimizer.step()
        for i, window, last in cuts():
            (_loss(model, data[i]) / window).backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
    return tape


def applied_again() -> Tape:
    model, optimizer, data = _parts()
    with taped(model) as tape:
        for epoch in range(EPOCHS):
            optimizer.zero_grad()
            for i, window, last in cuts():
                (_loss(model, data[i]) / window).backward()
                if last:
                    optimizer.step()
                    if epoch == 0:
                        optimizer.zero_grad()
    return tape


def _in_backward(hooks_first: bool) -> Tape:
    """Each parameter has an optimizer that updates as soon as its gradient is there."""
    model, _, data = _parts()
    optimizers = {parameter: torch.optim.SGD([parameter], 0.1) for parameter in model.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    def hang():
        for parameter in optimizers:
            parameter.register_post_accumulate_grad_hook(step)

    if hooks_first:
        hang()
    with taped(model) as tape:
        if not hooks_first:
            hang()
        for batch in data:
            (_loss(model, batch) / N).backward()
    return tape


def step_every_micro_batch_in_backward() -> Tape:
    return _in_backward(hooks_first=True)


def step_every_micro_batch_in_backward_after_ours() -> Tape:
    return _in_backward(hooks_first=False)


def no_gradient() -> Tape:
    model = net()
    model.unused = nn.Linear(3, 3)
    optimizer, data = torch.optim.SGD(model.parameters(), 0.1), batches()
    with taped(model) as tape:
        for i, window, last in cuts():
            (_loss(model, data[i]) / window).backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
    return tape


def low_precision_buffer() -> Tape:
    model = net().bfloat16()
    optimizer, data = torch.optim.SGD(model.parameters(), 0.1), batches(128)
    with taped(model, accumulation_steps=128, micro_batches_per_epoch=128) as tape:
        for x, labels in data:
            (F.cross_entropy(model(x.bfloat16()), labels) / 128).backward()
        optimizer.step()
    return tape


def ema_every_micro_batch() -> Tape:
    model, optimizer, data = _parts()
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    with taped(model, watch=[average]) as tape:
        for i, window, last in cuts():
            (_loss(model, data[i]) / window).backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
            average.update_parameters(model)
    return tape


class _WithTeacher(Net):
    """A frozen copy inside the model follows it at every forward."""

    def __init__(self) -> None:
        super().__init__()
        self.teacher = nn.Linear(8, 3).requires_grad_(False)

    def forward(self, x, labels=None):
        with torch.no_grad():
            self.teacher.weight.lerp_(self.head.weight, 0.1)
            self.teacher.bias.lerp_(self.head.bias, 0.1)
        return super().forward(x, labels)


def ema_every_micro_batch_in_forward() -> Tape:
    torch.manual_seed(0)
    model = _WithTeacher()
    optimizer, data = torch.optim.SGD(model.parameters(), 0.1), batches()
    with taped(model) as tape:
        for i, window, last in cuts():
            (_loss(model, data[i]) / window).backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
    return tape


def _half(before, scaler_given: bool, clip_first: bool = False, between=lambda scaler, optimizer: None) -> Tape:
    model, data = net(), batches()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu")
    with taped(model, scaler=scaler if scaler_given else None) as tape:
        for i, window, last in cuts():
            scaler.scale(_loss(model, data[i]) / window).backward()
            between(scaler, optimizer)
            if last:
                before(model, scaler, optimizer)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
    return tape


def clip_scaled_gradients() -> Tape:
    return _half(lambda model, scaler, optimizer: clip_grad_norm_(model.parameters(), 0.5), scaler_given=True)


def clip_scaled_gradients_of_an_unknown_scaler() -> Tape:
    return _half(lambda model, scaler, optimizer: clip_grad_norm_(model.parameters(), 1.0), scaler_given=False)


def _skipping(scaler: torch.amp.GradScaler | None) -> Tape:
    """One micro-batch has no number for a loss. The loop skips the update, and does not zero."""
    model, optimizer, data = _parts()
    data[5] = (data[5][0] * float("nan"), data[5][1])
    with taped(model, scaler=scaler) as tape:
        for _ in range(EPOCHS):
            for i, window, last in cuts():
                loss = _loss(model, data[i]) / window
                (loss if scaler is None else scaler.scale(loss)).backward()
                if last:
                    if scaler is not None:
                        scaler.unscale_(optimizer)
                        scaler.update()
                    if torch.isfinite(clip_grad_norm_(model.parameters(), 5.0)):
                        optimizer.step()
                        optimizer.zero_grad()
    return tape


def not_finite_kept() -> Tape:
    return _skipping(None)


def not_finite_kept_by_a_loop_with_a_scaler() -> Tape:
    return _skipping(torch.amp.GradScaler("cpu"))


def unscale_twice() -> Tape:
    """By hand: a GradScaler refuses it. The model is looked at in between."""
    model, optimizer, data = _parts()
    with taped(model) as tape:
        for i, window, last in cuts():
            (_loss(model, data[i]) / window * 1024).backward()
            if last:
                for _ in range(2):
                    for parameter in model.parameters():
                        parameter.grad.mul_(1 / 1024)
                    with torch.no_grad():
                        model(data[i][0])
                optimizer.step()
                optimizer.zero_grad()
    return tape


def unscale_inside_window() -> Tape:
    model, optimizer, data = _parts()
    with taped(model) as tape:
        for i, window, last in cuts():
            (_loss(model, data[i]) / window * 65536).backward()
            for parameter in model.parameters():
                parameter.grad.mul_(1 / 65536)
            if last:
                optimizer.step()
                optimizer.zero_grad()
    return tape


def scheduler_every_micro_batch_unseen() -> Tape:
    """Nobody gives the scheduler: the learning rate tells."""
    model, optimizer, data = _parts()
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda tick: 0.9**tick)
    with taped(model) as tape:
        for i, window, last in cuts():
            (_loss(model, data[i]) / window).backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
            scheduler.step()
    return tape


def graphs_kept_alive_by_a_report() -> Tape:
    """Losses that are only looked at are kept with their graphs."""
    model, optimizer, data = _parts()
    seen = []
    with taped(model) as tape:
        for i, window, last in cuts():
            seen.append(_loss(model, data[i]))
            (_loss(model, data[i]) / window).backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
    return tape


WRONG = {
    name: loop
    for name, loop in list(globals().items())
    if callable(loop) and getattr(loop, "__module__", "") == __name__ and not name.startswith("_")
}
"""All of them; a name begins with the id of the finding."""

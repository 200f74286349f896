"""Loops that accumulate as they should, in as many ways as people do it. Each gives back its tape."""

import copy

import torch
from detective.tape.bench import EPOCHS, LENGTH, N, Net, batches, cuts, net, taped
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint

from gradacc_lessons import Tape, accumulate
from gradacc_lessons.accumulation import windows


def _loss(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


def _train(model, optimizer, loss=_loss, before=lambda: None, after=lambda: None, set_to_none=True, epochs=EPOCHS):
    data = batches()
    for _ in range(epochs):
        for i, window, last in cuts():
            (loss(model, data[i]) / window).backward()
            if last:
                before()
                optimizer.step()
                after()
                optimizer.zero_grad(set_to_none=set_to_none)


def by_hand() -> Tape:
    model = net()
    with taped(model) as tape:
        _train(model, torch.optim.SGD(model.parameters(), 0.1))
    return tape


def zeros_that_stay() -> Tape:
    model = net()
    with taped(model) as tape:
        _train(model, torch.optim.Adam(model.parameters()), set_to_none=False)
    return tape


def zeroed_between_forward_and_backward() -> Tape:
    model, data = net(), batches()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with taped(model) as tape:
        for _ in range(EPOCHS):
            for i, window, last in cuts():
                loss = _loss(model, data[i]) / window
                if i % N == 0:
                    model.zero_grad(set_to_none=bool(i))
                loss.backward()
                if last:
                    optimizer.step()
    return tape


def with_accumulate() -> Tape:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with taped(model) as tape:
        for _ in range(EPOCHS):
            for window in windows(batches(), N):
                accumulate(
                    model, window, lambda m, b: F.cross_entropy(m(b[0]), b[1], reduction="sum"), lambda b: len(b[1])
                )
                optimizer.step()
                optimizer.zero_grad()
    return tape


def clipped_and_scheduled() -> Tape:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: 0.9**update)
    with taped(model, optimizer, scheduler) as tape:
        _train(model, optimizer, before=lambda: clip_grad_norm_(model.parameters(), 0.1), after=scheduler.step)
    return tape


def clipped_by_value() -> Tape:
    model = net()
    with taped(model) as tape:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        _train(model, optimizer, before=lambda: clip_grad_value_(model.parameters(), 0.01))
    return tape


def clipped_by_a_norm_that_is_never_reached() -> Tape:
    model = net()
    with taped(model) as tape:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        _train(model, optimizer, before=lambda: clip_grad_norm_(model.parameters(), 1e6))
    return tape


def fused() -> Tape:
    model = net()
    with taped(model) as tape:
        _train(model, torch.optim.AdamW(model.parameters(), fused=True))
    return tape


def foreach() -> Tape:
    model = net()
    with taped(model) as tape:
        _train(model, torch.optim.AdamW(model.parameters(), foreach=True, weight_decay=0.1))
    return tape


def autocast() -> Tape:
    model = net()

    def loss(model, batch):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return _loss(model, batch)

    with taped(model) as tape:
        _train(model, torch.optim.SGD(model.parameters(), 0.1), loss)
    return tape


def _scaled(
    unscale: bool, clip: float | None, give_scaler: bool, fused: bool = False, spoil: int | None = None
) -> Tape:
    model, data = net(), batches()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=fused)
    scaler = torch.amp.GradScaler("cpu")
    with taped(model, scaler=scaler if give_scaler else None) as tape:
        for _ in range(EPOCHS):
            for i, window, last in cuts():
                with torch.autocast("cpu", dtype=torch.float16):
                    loss = _loss(model, data[i]) / window
                scaler.scale(loss * (torch.inf if i == spoil else 1)).backward()
                if last:
                    if unscale:
                        scaler.unscale_(optimizer)
                    if clip is not None:
                        clip_grad_norm_(model.parameters(), clip)
                    scaler.step(optimizer)
                    scaler.update()
                    optimizer.zero_grad()
    return tape


def grad_scaler() -> Tape:
    return _scaled(unscale=False, clip=None, give_scaler=False)


def grad_scaler_unscaled_and_clipped() -> Tape:
    return _scaled(unscale=True, clip=0.5, give_scaler=False)


def grad_scaler_that_is_given() -> Tape:
    return _scaled(unscale=True, clip=0.5, give_scaler=True)


def grad_scaler_clipped_by_an_odd_norm() -> Tape:
    return _scaled(unscale=True, clip=0.123456, give_scaler=True)


def grad_scaler_that_never_clips() -> Tape:
    return _scaled(unscale=True, clip=1e6, give_scaler=False)


def grad_scaler_and_fused() -> Tape:
    return _scaled(unscale=False, clip=None, give_scaler=False, fused=True)


def grad_scaler_that_skips() -> Tape:
    return _scaled(unscale=True, clip=0.5, give_scaler=True, spoil=5)


def grad_scaler_and_fused_that_skips() -> Tape:
    return _scaled(unscale=False, clip=None, give_scaler=False, fused=True, spoil=5)


def checkpointed() -> Tape:
    model = net()

    def loss(model, batch):
        hidden = checkpoint(model.body, batch[0], use_reentrant=False)
        return F.cross_entropy(model.head(torch.tanh(hidden)), batch[1])

    with taped(model) as tape:
        _train(model, torch.optim.SGD(model.parameters(), 0.1), loss)
    return tape


def checkpointed_as_a_whole() -> Tape:
    model = net()

    def loss(model, batch):
        return F.cross_entropy(checkpoint(model, batch[0], use_reentrant=False), batch[1])

    with taped(model) as tape:
        _train(model, torch.optim.SGD(model.parameters(), 0.1), loss)
    return tape


class _Reentrant(Net):
    def forward(self, x, labels=None):
        return self.head(torch.tanh(checkpoint(self.body, x.requires_grad_(), use_reentrant=True)))


def checkpointed_reentrantly() -> Tape:
    torch.manual_seed(0)
    model = _Reentrant()
    with taped(model) as tape:
        _train(model, torch.optim.SGD(model.parameters(), 0.1))
    return tape


class _Both:
    """Two optimizers as one."""

    def __init__(self, *optimizers):
        self.optimizers = optimizers

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()

    def zero_grad(self, **options):
        for optimizer in self.optimizers:
            optimizer.zero_grad(**options)


def two_optimizers() -> Tape:
    model = net()
    both = _Both(torch.optim.SGD(model.body.parameters(), 0.1), torch.optim.Adam(model.head.parameters()))
    with taped(model) as tape:
        _train(model, both)
    return tape


def two_optimizers_one_after_the_other() -> Tape:
    model, data = net(), batches()
    first, second = torch.optim.SGD(model.body.parameters(), 0.1), torch.optim.Adam(model.head.parameters())
    with taped(model) as tape:
        for _ in range(EPOCHS):
            for i, window, last in cuts():
                (_loss(model, data[i]) / window).backward()
                if last:
                    first.step()
                    first.zero_grad()
                    second.step()
                    second.zero_grad()
    return tape


def _pair(judged: bool) -> Tape:
    """A generator and a discriminator, each with windows of N; the tape of one of them."""
    torch.manual_seed(0)
    generator, judge = nn.Linear(2, 6), nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
    first, second = torch.optim.Adam(judge.parameters()), torch.optim.Adam(generator.parameters())
    data = batches()

    def loss(batch, wanted):
        return F.binary_cross_entropy_with_logits(judge(batch), torch.full((len(batch), 1), wanted))

    with taped(generator) as of_generator, taped(judge) as of_judge:
        for _ in range(EPOCHS):
            for window in windows(data, N):
                first.zero_grad()
                for real, _ in window:
                    made = generator(torch.randn(2, 2)).detach()
                    ((loss(real, 1.0) + loss(made, 0.0)) / len(window)).backward()
                first.step()
                second.zero_grad()
                for _ in window:
                    (loss(generator(torch.randn(2, 2)), 1.0) / len(window)).backward()
                second.step()
    return of_judge if judged else of_generator


def gan_discriminator() -> Tape:
    return _pair(judged=True)


def gan_generator() -> Tape:
    return _pair(judged=False)


def lbfgs() -> Tape:
    model, data = net(), batches()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure_of(window):
        def closure():
            optimizer.zero_grad()
            total = torch.zeros(())
            for batch in window:
                loss = _loss(model, batch) / len(window)
                loss.backward()
                total += loss.detach()
            return total

        return closure

    with taped(model) as tape:
        for window in windows(data, N):
            optimizer.step(closure_of(window))
    return tape


def gradient_penalty() -> Tape:
    model = net()

    def loss(model, batch):
        x = batch[0].clone().requires_grad_()
        logits = model(x)
        (slope,) = torch.autograd.grad(logits.sum(), x, create_graph=True)
        return F.cross_entropy(logits, batch[1]) + slope.square().sum()

    with taped(model) as tape:
        _train(model, torch.optim.SGD(model.parameters(), 0.1), loss)
    return tape


def two_views() -> Tape:
    model = net()

    def loss(model, batch):
        return (model(batch[0]) - model(batch[0] + 0.1)).square().mean()

    with taped(model) as tape:
        _train(model, torch.optim.SGD(model.parameters(), 0.1), loss)
    return tape


def two_losses_of_one_forward() -> Tape:
    model, data = net(), batches()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with taped(model) as tape:
        for _ in range(EPOCHS):
            for i, window, last in cuts():
                logits = model(data[i][0])
                (F.cross_entropy(logits, data[i][1]) / window).backward(retain_graph=True)
                (logits.square().mean() / window).backward()
                if last:
                    optimizer.step()
                    optimizer.zero_grad()
    return tape


def parts_called_one_by_one() -> Tape:
    model = net()

    def loss(model, batch):
        return F.cross_entropy(model.head(torch.tanh(model.body(batch[0]))), batch[1])

    with taped(model) as tape:
        _train(model, torch.optim.SGD(model.parameters(), 0.1), loss)
    return tape


def never_called() -> Tape:
    model = net()

    def loss(model, batch):
        hidden = F.linear(batch[0], model.body[0].weight, model.body[0].bias)
        hidden = F.linear(torch.tanh(hidden), model.body[2].weight, model.body[2].bias)
        return F.cross_entropy(F.linear(hidden, model.head.weight, model.head.bias), batch[1])

    with taped(model) as tape:
        _train(model, torch.optim.SGD(model.parameters(), 0.1), loss)
    return tape


def frozen_and_thawed() -> Tape:
    model = net()
    model.body.requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with taped(model) as tape:
        _train(model, optimizer, epochs=1)
        model.body.requires_grad_(True)
        _train(model, optimizer, epochs=1)
    return tape


def average_per_update() -> Tape:
    model = net()
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    with taped(model, watch=(average,)) as tape:
        _train(model, torch.optim.SGD(model.parameters(), 0.1), after=lambda: average.update_parameters(model))
    return tape


def batch_norm() -> Tape:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    with taped(model) as tape:
        _train(model, torch.optim.SGD(model.parameters(), 0.1))
    return tape


def evaluated_between_updates() -> Tape:
    model, data = net(), batches()

    def evaluate():
        with torch.no_grad():
            for batch in data:
                _loss(model, batch)

    with taped(model) as tape:
        _train(model, torch.optim.SGD(model.parameters(), 0.1), after=evaluate)
    return tape


def weights_clamped_after_the_update() -> Tape:
    model = net()

    def clamp():
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.clamp_(-0.3, 0.3)

    with taped(model) as tape:
        _train(model, torch.optim.SGD(model.parameters(), 0.1), after=clamp)
    return tape


def sums_divided_before_the_update() -> Tape:
    model, data = net(), batches()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with taped(model) as tape:
        for _ in range(EPOCHS):
            for i, window, last in cuts():
                F.cross_entropy(model(data[i][0]), data[i][1], reduction="sum").backward()
                if last:
                    for parameter in model.parameters():
                        parameter.grad.div_(2 * window)
                    optimizer.step()
                    optimizer.zero_grad()
    return tape


def sharpness_aware() -> Tape:
    """SAM: a first gradient only says where the second one is taken."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with taped(model, accumulation_steps=1) as tape:
        for batch in batches():
            _loss(model, batch).backward()
            steps = [0.01 * parameter.grad for parameter in model.parameters()]
            with torch.no_grad():
                for parameter, step in zip(model.parameters(), steps, strict=True):
                    parameter.add_(step)
            optimizer.zero_grad()
            _loss(model, batch).backward()
            with torch.no_grad():
                for parameter, step in zip(model.parameters(), steps, strict=True):
                    parameter.sub_(step)
            optimizer.step()
            optimizer.zero_grad()
    return tape


def windows_that_span_epochs() -> Tape:
    model, data = net(), batches()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with taped(model) as tape:
        for count, batch in enumerate([*data, *data], start=1):
            (_loss(model, batch) / N).backward()
            if count % N == 0:
                optimizer.step()
                optimizer.zero_grad()
    return tape


def epochs_shorter_than_a_window() -> Tape:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with taped(model, micro_batches_per_epoch=3) as tape:
        for _ in range(4):
            for batch in batches(3):
                (_loss(model, batch) / 3).backward()
            optimizer.step()
            optimizer.zero_grad()
    return tape


def copied_while_taped() -> Tape:
    model, kept = net(), []
    with taped(model) as tape:
        _train(model, torch.optim.SGD(model.parameters(), 0.1), after=lambda: kept.append(copy.deepcopy(model)))
        _loss(kept[-1], batches()[0]).backward()
    return tape


def keeps_its_losses() -> Tape:
    """A loss that went backward holds no activations."""
    model, data, losses = net(), batches(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with taped(model) as tape:
        for _ in range(EPOCHS):
            for i, window, last in cuts():
                losses.append(_loss(model, data[i]) / window)
                losses[-1].backward()
                if last:
                    optimizer.step()
                    optimizer.zero_grad()
    return tape


def returns_its_loss() -> Tape:
    model, data = net(), batches()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with taped(model) as tape:
        for _ in range(EPOCHS):
            for i, window, last in cuts():
                (model(data[i][0], labels=data[i][1])["loss"] / window).backward()
                if last:
                    optimizer.step()
                    optimizer.zero_grad()
    return tape


RIGHT = {
    name: loop
    for name, loop in list(globals().items())
    if callable(loop) and getattr(loop, "__module__", "") == __name__ and not name.startswith("_")
}
"""All of them."""
SPECIAL = {
    "lbfgs",
    "sharpness_aware",
    "windows_that_span_epochs",
    "epochs_shorter_than_a_window",
    "grad_scaler_that_skips",
    "grad_scaler_and_fused_that_skips",
}
"""Those whose updates do not apply 4, 4, 2, 4, 4, 2 micro-batches."""
assert len(RIGHT) > 30 and LENGTH == 10

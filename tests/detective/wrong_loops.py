"""Loops that are wrong in ways the catalogue does not know, and loops that misbehave."""

import asyncio
import ctypes
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback

import torch

from gradacc_lessons.accumulation import windows


def _train(model, optimizer, micro_batches, loss_fn, accumulation_steps, change=None, skip=()):
    """A right loop in which `change` may touch the gradients before each update."""
    for window in windows(micro_batches, accumulation_steps):
        examples = sum(len(batch[0]) for batch in window)
        optimizer.zero_grad()
        for k, batch in enumerate(window):
            if k not in skip:
                (loss_fn(model, batch) * len(batch[0]) / examples).backward()
        if change is not None:
            for parameter in model.parameters():
                change(parameter)
        optimizer.step()


def nine_tenths(*arguments):
    _train(*arguments, change=lambda parameter: parameter.grad.mul_(0.9))


def almost_right(*arguments):
    _train(*arguments, change=lambda parameter: parameter.grad.mul_(1 + 1e-4))


def noise(*arguments):
    _train(*arguments, change=lambda parameter: parameter.grad.add_(0.01 * torch.randn_like(parameter)))


def sign_flip(*arguments):
    _train(*arguments, change=lambda parameter: parameter.grad.neg_())


def sign_only(*arguments):
    _train(*arguments, change=lambda parameter: parameter.grad.sign_())


def skips_the_third(*arguments):
    _train(*arguments, skip=(2,))


def first_twice(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    doubled = [micro_batches[0], *micro_batches[:-1]]
    _train(model, optimizer, doubled, loss_fn, accumulation_steps)


def two_updates_per_window(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for window in windows(micro_batches, accumulation_steps):
        _train(model, optimizer, window, loss_fn, accumulation_steps)
        _train(model, optimizer, window, loss_fn, accumulation_steps)


def weight_decay_of_its_own(*arguments):
    _train(*arguments, change=lambda parameter: parameter.grad.add_(0.01 * parameter.detach()))


def forgets_the_bias(*arguments):
    _train(*arguments, change=lambda parameter: parameter.grad.zero_() if parameter.ndim == 1 else None)


UNCATALOGUED = {
    function.__name__: function
    for function in (
        nine_tenths,
        almost_right,
        noise,
        sign_flip,
        sign_only,
        skips_the_third,
        first_twice,
        two_updates_per_window,
        weight_decay_of_its_own,
        forgets_the_bias,
    )
}


def hangs(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    while True:
        pass


def sleeps(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    time.sleep(1000)


def deaf(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGXCPU, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    while True:
        try:
            time.sleep(1000)
        except BaseException:
            continue


def allocates(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    kept = []
    while True:
        kept.append(bytearray(2**24))


def allocates_slowly(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    kept = []
    while len(kept) < 200:  # 3 GB: enough to be seen, and no more than a machine has
        kept.append(b"x" * 2**24)
        time.sleep(0.02)
    time.sleep(1000)


def allocates_tensors(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    kept = []
    while True:
        kept.append(torch.ones(2**22))


def exits(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    sys.exit(0)


def exits_hard(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    os._exit(0)


def kills_itself(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    os.kill(os.getpid(), signal.SIGKILL)


def segfault(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    ctypes.string_at(0)


def prints(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    while True:
        print("still training " * 100)


def prints_much_and_ends(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for _ in range(2000):
        print("still training " * 100)


def has_no_memory_to_say_so(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    """As after millions of calls within one another, whose traceback fills what is left."""

    def full(*_):
        raise MemoryError

    traceback.extract_tb = full
    raise MemoryError


def writes_to_every_pipe(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"\0\0\0\0\0\0\0\2{}" * 10)
        except OSError:
            continue
    os._exit(0)


def fills_the_disk(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    with open(os.devnull.replace("null", "shm/gradacc_test_bomb"), "wb") as file:
        os.unlink(file.name)
        for _ in itertools.repeat(None):
            file.write(bytes(2**20))


def leaves_children(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    subprocess.Popen(["sleep", "1000"])
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    raise RuntimeError("and goes")


def leaves_a_thread(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    threading.Thread(target=time.sleep, args=(1000,)).start()
    _train(model, optimizer, micro_batches, loss_fn, accumulation_steps)


def divides_by_zero(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    optimizer.zero_grad()
    return 1 / 0


def usual_loss(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for inputs, labels in micro_batches:
        loss_fn(model(inputs), labels).backward()


def not_started(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    raise NotImplementedError("write me")


def does_nothing(model, optimizer, micro_batches, loss_fn, accumulation_steps): ...


def forward_only(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    return [loss_fn(model, batch).item() for batch in micro_batches]


def backward_only(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for batch in micro_batches:
        (loss_fn(model, batch) / accumulation_steps).backward()


def own_optimizer(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    own = torch.optim.SGD(model.parameters(), lr=0.1)
    _train(model, own, micro_batches, loss_fn, accumulation_steps)


def by_hand(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    class Steps:
        def zero_grad(self):
            optimizer.zero_grad()

        def step(self):
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= optimizer.param_groups[0]["lr"] * parameter.grad

    _train(model, Steps(), micro_batches, loss_fn, accumulation_steps)


def scales_the_rate(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    optimizer.param_groups[0]["lr"] /= accumulation_steps
    for window in windows(micro_batches, accumulation_steps):
        optimizer.zero_grad()
        for batch in window:
            loss_fn(model, batch).backward()
        optimizer.step()


def normalises_in_place(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    for inputs, _ in micro_batches:
        inputs /= inputs.abs().max()
    _train(model, optimizer, micro_batches, loss_fn, accumulation_steps)


def eats_the_list(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    while micro_batches:
        window = [micro_batches.pop(0) for _ in range(min(accumulation_steps, len(micro_batches)))]
        _train(model, optimizer, window, loss_fn, accumulation_steps)


def shuffles_the_list(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    random.shuffle(micro_batches)
    _train(model, optimizer, micro_batches, loss_fn, accumulation_steps)


def four_parameters(model, optimizer, micro_batches, loss_fn):
    return None


def asks_for_more(model, optimizer, micro_batches, loss_fn, accumulation_steps, device):
    return None


def yields(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    yield from micro_batches


async def is_async(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    await asyncio.sleep(0)


class BadWords(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


def raises_strangely(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    raise BadWords


def html(model, optimizer, micro_batches, loss_fn, accumulation_steps):
    print("<script>alert(2)</script>")
    raise ValueError("<script>alert(1)</script>")

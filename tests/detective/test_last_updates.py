"""What is done for full windows and not for the last one, and what stands around an update: names, and none."""

import pytest

from gradacc_lessons import diagnose
from gradacc_lessons.detective.diagnose import Outcome
from gradacc_lessons.detective.faults import FAULTS, compiled
from gradacc_lessons.text import LANGUAGES

LOOP = """
from torch.nn.utils import clip_grad_norm_, clip_grad_value_


def train_epoch(model, optimizer, micro_batches, loss_fn, N, {keywords}):
    def clip():
        {clip}

    full = len(micro_batches) // N * N
    optimizer.zero_grad()
    for i, batch in enumerate(micro_batches[:full], 1):
        (loss_fn(model, batch) / N).backward()
        if i % N == 0:
            clip()
            optimizer.step()
            optimizer.zero_grad()
            {schedule}
    rest = micro_batches[full:]
    for batch in rest:
        loss = loss_fn(model, batch) / len(rest)
        {each}
    if rest:
        {last}
    {after}
"""
RIGHT = {
    "keywords": "max_norm, scheduler",
    "clip": "clip_grad_norm_(model.parameters(), max_norm)",
    "schedule": "scheduler.step()",
    "each": "loss.backward()",
    "last": "clip(); optimizer.step(); scheduler.step()",
    "after": "pass",
}
"""As in many scripts, what is left over has code of its own."""


def loop(**changed: str):
    return compiled(LOOP.format(**RIGHT | changed), f"<{changed}>")


NAMED = {
    "no clipping": ({"last": "optimizer.step(); scheduler.step()"}, {"tail_updated_differently"}),
    "no schedule": ({"last": "clip(); optimizer.step()"}, {"tail_updated_differently"}),
    "neither": ({"last": "optimizer.step()"}, {"tail_updated_differently"}),
    "no clipping, no scheduler": (
        {"keywords": "max_norm", "schedule": "pass", "last": "optimizer.step()"},
        {"tail_updated_differently"},
    ),
    "no division": ({"each": "(loss * len(rest)).backward()"}, {"tail_unscaled"}),
    "no division and no clipping": (
        {"each": "(loss * len(rest)).backward()", "last": "optimizer.step(); scheduler.step()"},
        {"tail_unscaled", "tail_updated_differently"},
    ),
    "one": ({"clip": "clip_grad_norm_(model.parameters(), 1.0)"}, {"max_norm_ignored"}),
    "five, and twice": (
        {"clip": "clip_grad_norm_(model.parameters(), 5.0)", "after": "scheduler.step()"},
        {"max_norm_ignored", "scheduler_twice"},
    ),
    "a half, and in the last window nothing": (
        {"clip": "clip_grad_norm_(model.parameters(), 0.5)", "last": "optimizer.step(); scheduler.step()"},
        {"max_norm_ignored", "tail_updated_differently"},
    ),
    "per update and per epoch": ({"after": "scheduler.step()"}, {"scheduler_twice"}),
}
UNNAMED = {
    "a threshold made of max_norm": {"clip": "clip_grad_norm_(model.parameters(), max_norm / 3)"},
    "entries": {"clip": "clip_grad_value_(model.parameters(), max_norm)"},
    "one at a time": {"each": "loss.backward(); optimizer.step(); optimizer.zero_grad()", "last": "pass"},
    "twice after each update": {"schedule": "scheduler.step(); scheduler.step()"},
}
"""Wrong, and rare or not one thing: what was measured is said, and no name is guessed."""


def test_code_of_its_own_may_be_right():
    assert diagnose(loop(), "tail").correct


@pytest.mark.few(5)
@pytest.mark.parametrize("name", NAMED)
def test_what_the_last_update_lacks_is_named(name):
    changed, faults = NAMED[name]
    found = diagnose(loop(**changed), "tail")
    assert set(found.faults) == faults, found.message
    assert all(FAULTS[fault].message.to(language) in found.to(language) for fault in faults for language in LANGUAGES)


@pytest.mark.parametrize("name", UNNAMED)
def test_what_is_rare_gets_no_name(name):
    found = diagnose(loop(**UNNAMED[name]), "tail")
    assert (found.outcome, found.faults) == (Outcome.WRONG, ()), found.message
    assert "in a way that the catalogue does not know" in found.message

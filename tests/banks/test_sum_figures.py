"""Lesson 06's numbers are computed again: by running losses, counting cells, forwards and bytes."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from banks.course_content import check_rounded, draws, question
from torch import Tensor, nn

from gradacc_lessons import examine
from gradacc_lessons.accumulation import split
from gradacc_lessons.lessons.contrastive import compared, error_against_steps
from gradacc_lessons.lessons.loss_cases import CASES, setting
from gradacc_lessons.lessons.losses import verdict
from gradacc_lessons.lessons.overlap import EPS, batch_dice, sample_dice
from gradacc_lessons.lessons.pairs import contrastive_loss, embed, info_nce, pairs_of, trained_encoder
from gradacc_lessons.lessons.training import gradient
from gradacc_lessons.quiz.grade import grade_prediction
from gradacc_lessons.quiz.try_sum import pair_loss, small_batches, small_encoder
from gradacc_lessons.reference.grad_cache import grad_cache
from gradacc_lessons.tasks import digits


def answer(question_id: str, drawn: dict[str, int | float]) -> float:
    return float(question(question_id).answer.value(drawn))


def test_the_prediction_is_graded_by_the_measured_error() -> None:
    asked, first = question("sum-predict-error"), next(iter(error_against_steps(8, 4, "plain")))
    measured = round(100 * first["plain_error"])
    assert grade_prediction(asked, 100 * (1 - 7 / 31), measured).correct  # the share of negatives that are missing
    for wrong in (0.0, 25.0, 50.0, 100.0):
        assert not grade_prediction(asked, wrong, measured).correct


def test_a_lone_pair_has_no_loss_and_no_gradient_whatever_the_temperature() -> None:
    model = trained_encoder()
    loss = contrastive_loss(model, pairs_of(1))
    loss.backward()
    assert float(loss.detach()) == 0.0 and float(gradient(model).norm()) == 0.0


def test_negatives_and_cells_are_counted() -> None:
    for drawn in draws(question("sum-negatives")):
        pairs, n = int(drawn["pairs"]), int(drawn["n"])
        row = compared(pairs, len(split((torch.zeros(pairs),), pairs // n)[0][0]), "plain")[0]
        assert answer("sum-negatives", drawn) == row.sum() - 1
    for drawn in draws(question("sum-share")):
        b, n = int(drawn["b"]), int(drawn["n"])
        off = ~np.eye(b * n, dtype=bool)
        assert answer("sum-share", drawn) == pytest.approx(100 * compared(b * n, b, "plain")[off].mean())


def test_no_factor_repairs_the_gradient_and_it_is_shorter() -> None:
    for seed in range(5):
        model, pairs = trained_encoder(seed), pairs_of(32, seed)
        contrastive_loss(model, pairs).backward()
        full = gradient(model).clone()
        model.zero_grad()
        for batch in split(pairs, 8):
            (contrastive_loss(model, batch) / 4).backward()
        got = gradient(model)
        assert got.norm() < full.norm()
        stretched = got * (full.norm() / got.norm())
        assert float((stretched - full).norm() / full.norm()) > 0.2


def run_listing(code: str, sizes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """(the gradient that the listing of the spot question leaves, that of the full batch)."""
    names: dict[str, Any] = {"torch": torch}
    exec(code, names)
    model, full = small_encoder(0), small_encoder(0)
    names["grad_cache"](model, small_batches(0, *sizes), pair_loss)
    pair_loss(full(torch.cat(small_batches(0, *sizes)))).backward()
    return gradient(model), gradient(full)


def test_the_listing_is_right_for_one_micro_batch_and_its_line_repairs_it() -> None:
    spot = question("sum-spot-cache")
    got, full = run_listing(spot.code, (6,))
    assert torch.allclose(got, full, rtol=1e-12)
    got, full = run_listing(spot.code, (3, 3))
    assert float((got - full).norm() / full.norm()) > 0.01
    (line,) = spot.line
    lines = spot.listing()
    lines[line - 1] = "        start = stop"
    got, full = run_listing("\n".join(lines), (2, 4, 3))
    assert torch.allclose(got, full, rtol=1e-12)


def test_grad_cache_adds_one_forward_and_no_backward() -> None:
    model, pairs, calls = trained_encoder(), pairs_of(16), {"forward": 0, "backward": 0}

    def backward(_: Tensor) -> None:
        calls["backward"] += 1

    def forward(_: nn.Module, __: Any, output: Tensor) -> None:
        calls["forward"] += 1
        if output.requires_grad:
            output.register_hook(backward)

    model.register_forward_hook(forward)
    for batch in split(pairs, 4):
        contrastive_loss(model, batch).backward()
    plain = dict(calls)
    calls |= {"forward": 0, "backward": 0}
    grad_cache(model, split(pairs, 4), embed, info_nce)
    assert calls == {"forward": 2 * plain["forward"], "backward": plain["backward"]}
    for drawn in draws(question("sum-forwards")):
        forward_time, backward_time = 1.0, float(drawn["r"])
        without, with_it = forward_time + backward_time, 2 * forward_time + backward_time
        assert answer("sum-forwards", drawn) == pytest.approx(100 * (with_it / without - 1))


def test_embeddings_and_their_gradients_have_the_bytes_that_are_said() -> None:
    for drawn in draws(question("sum-cache-bytes")):
        kept = torch.empty(int(drawn["k"]) * 1000, int(drawn["d"]), device="meta")
        assert answer("sum-cache-bytes", drawn) == pytest.approx(4 * kept.nbytes / 1e6)


class Given(nn.Module):
    """Finds what it is given, as probabilities."""

    def forward(self, found: Tensor) -> Tensor:
        return found.logit()


def test_the_dice_of_two_masks_is_that_of_their_sums() -> None:
    asked = question("sum-dice-batch")
    for drawn in draws(asked):
        found, masks = torch.zeros(2, 1, 8, 32, dtype=torch.float64), torch.zeros(2, 1, 8, 32, dtype=torch.float64)
        for k, (pixels, both) in enumerate(((10, int(drawn["small"])), (200, int(drawn["large"])))):
            half = pixels // 2
            masks[k].view(-1)[:half] = 1
            found[k].view(-1)[half - both : 2 * half - both] = 1
        whole = float(batch_dice(Given(), (found, masks)))
        assert answer("sum-dice-batch", drawn) == pytest.approx(whole, abs=10 * EPS)
        mean = float(sample_dice(Given(), (found, masks)))
        assert float(asked.mistakes[0].formula.value(drawn)) == pytest.approx(mean, abs=10 * EPS)
        assert abs(mean - whole) > 0.05


def test_an_average_that_moves_at_every_forward_keeps_that_much() -> None:
    for drawn in draws(question("sum-ema")):
        old = 1.0
        for _ in range(int(drawn["n"])):
            old = float(drawn["decay"]) * old + (1 - float(drawn["decay"])) * 0.0
        assert answer("sum-ema", drawn) == pytest.approx(100 * old)


def test_an_option_of_what_adds_up_is_right_exactly_if_examine_says_so() -> None:
    asked = question("sum-additive")
    assert {option.id for option in asked.options} <= set(CASES)
    for option in asked.options:
        (row,) = verdict(option.id, 8, 4)
        assert row["additive"] == option.correct, option.id


def test_dropout_differs_in_training_and_not_in_eval() -> None:
    model, loss_fn, batch = setting("dropout", 32)

    def of(n: int) -> Tensor:
        model.zero_grad()
        torch.manual_seed(0)  # "from the same seed"
        for piece in split(batch, 32 // n):
            (loss_fn(model, piece) / n).backward()
        return gradient(model).clone()

    with torch.random.fork_rng(devices=[]):
        model.eval()
        assert torch.allclose(of(4), of(1), rtol=1e-10, atol=1e-14)
        # One dropout behind one layer draws the same masks from the same seed, cut or not; two do not.
        model = nn.Sequential(model, nn.Dropout()).train()
        assert float((of(4) - of(1)).norm() / of(1).norm()) > 0.2


def test_a_cause_stays_until_it_is_dealt_with_itself() -> None:
    images, labels = (part[:32] for part in digits(dtype=torch.float64).train)
    loss_fn = CASES["hard_triplet"].loss_fn
    found = {
        norm: examine(digits(norm=norm, dtype=torch.float64).build_model(), loss_fn, (images, labels), 8)
        for norm in ("batch", "group")
    }
    assert {"batch_statistics", "loss_not_additive"} <= set(found["batch"].causes)
    assert found["group"].causes == ("loss_not_additive",)


def test_a_loss_of_a_512th_is_no_underflow() -> None:
    tiny = float(torch.tensor(math.log(2) / 512, dtype=torch.float32))
    assert tiny > torch.finfo(torch.float32).tiny * 1e30


@pytest.mark.parametrize("question_id", ["sum-share", "sum-forwards", "sum-cache-bytes", "sum-ema"])
def test_a_rounded_value_is_the_value(question_id: str) -> None:
    asked = question(question_id)
    assert "Round to whole " in asked.prompt.en and "Rond af op hele " in asked.prompt.nl
    check_rounded(asked, 1)

"""Lesson 08's first explorer: sums of real pieces, and what the picture and the words say of them."""

import numpy as np
import pytest
import torch

from gradacc_lessons.lessons.bf16_sum import (
    BUFFERS,
    ENTRIES,
    MOST_STEPS,
    PIECES,
    Sum,
    add_up,
    errors_over_seeds,
    explore_sum,
    pieces_of,
)
from gradacc_lessons.lessons.bf16_sum_figure import SumFigure, off, sum_sentence, sum_table
from gradacc_lessons.lessons.training import collect


@pytest.mark.parametrize("kind", [kind for _, kind in PIECES])
def test_the_pieces_are_bfloat16_and_n_of_them_make_the_whole(kind: str) -> None:
    pieces = list(pieces_of(kind, 4, 8))  # type: ignore[arg-type]
    assert len(pieces) == 8 and {piece.dtype for piece in pieces} == {torch.bfloat16}
    if kind == "equal":
        assert all(torch.equal(piece, pieces[0]) for piece in pieces) and len(pieces[0]) == ENTRIES
    else:
        assert not torch.equal(pieces[0], pieces[1])


def test_a_row_says_what_a_sum_made_here_says() -> None:
    data = collect(add_up("bfloat16", "equal", 1, 300))
    piece = next(pieces_of("equal", 1, 300))
    total = torch.zeros(ENTRIES, dtype=torch.bfloat16)
    for added in range(1, 301):
        total += piece
        row = data[data["added"] == added]
        if len(row):
            wanted = piece.double() * added
            assert row["error"].item() == pytest.approx(float((total.double() - wanted).norm() / wanted.norm()))
            assert row["error_bfloat16"].item() == row["error"].item()
    assert data["added"].iloc[-1] == 300 and data["added"].is_monotonic_increasing


def test_where_it_stalls_every_entry_holds_a_power_of_two() -> None:
    """What the page says of N = 512: each stops at the first that is 256 times a piece or more, and all are short."""
    piece = next(pieces_of("equal", 1, 512)).double()
    total = Sum("bfloat16")
    for each in pieces_of("equal", 1, 512):
        total.add(each)
    held, some = total.total.double(), piece != 0
    powers = held[some].abs().log2()
    assert total.stuck == 1.0 and bool((powers == powers.round()).all())
    assert torch.equal(held[some].abs(), 2 ** (256 * piece[some].abs()).log2().ceil())
    assert bool((held.abs() <= 512 * piece.abs()).all())


def test_above_a_power_of_two_a_number_arrives_nearly_whole_and_below_it_it_loses_half() -> None:
    """What the page says of single numbers at N = 512; and what the notes say: there it is 256 to 512 times a piece."""
    for power in (0.5, 1.0, 4.0):
        for share, kept in ((1.02, 1 / 1.02), (0.98, 0.5 / 0.98), (1.0, 0.5)):
            piece = torch.tensor(share * power / 512).bfloat16().reshape(1)
            total = Sum("bfloat16")
            for _ in range(512):
                total.add(piece)
            assert total.stuck == 1.0
            assert float(total.total) / (share * power) == pytest.approx(kept, rel=0.01)
            assert 256 <= float(total.total / piece.double()) < 512


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        (("bf16", "equal", 1, 8), "the buffer must be one of bfloat16, kahan, float32, float64; it is 'bf16'"),
        (("kahan", "even", 1, 8), "pieces must be one of equal, noisy, model; it is 'even'"),
        (("kahan", "equal", 1, 0), "whole number of at least 1; it is 0"),
        (("kahan", "equal", "1", 8), "whole number of at least 1; it is '1'"),
    ],
)
def test_what_there_is_not_is_refused_in_a_sentence(chosen, sentence: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=sentence):
        next(add_up(*chosen))


def test_noisy_pieces_are_as_far_off_at_twice_the_n() -> None:
    """About: what the teacher's notes say."""
    noisy, equal = (errors_over_seeds(kind, n, range(2)) for kind, n in (("noisy", 1024), ("equal", 512)))  # type: ignore[arg-type]
    for one, other in zip(noisy["bfloat16"], equal["bfloat16"], strict=True):
        assert one == pytest.approx(other, rel=0.25)


def test_before_it_stalls_many_entries_grow_too_fast() -> None:
    """What the teacher's notes say of N = 256."""
    total, truth = Sum("bfloat16"), Sum("float64")
    for piece in pieces_of("equal", 1, 256):
        total.add(piece)
        truth.add(piece)
    assert total.stuck < 0.05
    assert float((total.total.double().abs() > truth.total.abs()).double().mean()) > 0.3


def test_real_gradients_hold_longer_than_equal_pieces_and_fail_too() -> None:
    rows = {n: errors_over_seeds("model", n, range(2)) for n in (64, 512)}
    equal = errors_over_seeds("equal", 512, range(2))
    for seed in range(2):
        assert rows[64]["bfloat16"][seed] < 0.015 < rows[512]["bfloat16"][seed] < equal["bfloat16"][seed]
        assert rows[512]["kahan"][seed] < 4e-3 and rows[512]["float32"][seed] < 1e-6


def test_every_control_moves_the_picture_and_its_words() -> None:
    explorer = explore_sum()
    explorer.start()
    explorer.wait(60)
    first = explorer.sentence
    assert "512 equal pieces" in first and "31 % off" in first and "nothing in 100 % of the entries" in first
    explorer.set(buffer="float32")
    explorer.wait(60)
    assert explorer.sentence.endswith("the sum is exact. Plain bfloat16 is 31 % off.")
    explorer.set(buffer="kahan", pieces="noisy", accumulation_steps=300)
    explorer.wait(60)
    assert "with Kahan's correction: the sum is 0.17 % off" in explorer.sentence
    explorer.set(pieces="model", micro_batch_size=2, accumulation_steps=16)
    explorer.wait(60)
    assert "the gradients of 16 micro-batches (b = 2)" in explorer.sentence.replace("The", "the")
    with pytest.raises(ValueError, match=f"from 1 to {MOST_STEPS}"):
        explorer.set(accumulation_steps=MOST_STEPS + 1)


@pytest.mark.parametrize("buffer", [buffer for _, buffer in BUFFERS])
@pytest.mark.parametrize("n", [1, 2, MOST_STEPS])
def test_the_ends_of_the_slider_are_drawn(buffer: str, n: int) -> None:
    data = collect(add_up(buffer, "equal", 1, n, predicted=20.0))  # type: ignore[arg-type]
    figure = SumFigure()
    said = figure.draw(data)
    assert said == sum_sentence(data) and "You predicted 20 %" in said
    assert figure.png()[:4] == b"\x89PNG"
    assert len(sum_table(data)) <= 6 and sum_table(data)["pieces added"].iloc[-1] == f"{n:,}"
    assert np.abs(data["truth"].iloc[-1]).max() == pytest.approx(1.0)


def test_an_error_in_words() -> None:
    assert [off(each) for each in (0.0, 1e-16, 2.4e-8, 0.00171, 0.0172, 0.0949, 0.3093)] == [
        *("exact", "exact", "2e-08 off", "0.17 % off", "1.7 % off", "9.5 % off", "31 % off"),
    ]

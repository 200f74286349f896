"""Lesson 04, tokens: a mean of means is off in every window, weighing by tokens in none, and the picture says so."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional

from gradacc_lessons import Recipe, accumulate
from gradacc_lessons.accumulation import split
from gradacc_lessons.lessons import token_weights
from gradacc_lessons.lessons.rounding import ROUNDING
from gradacc_lessons.lessons.token_weights import (
    MOST_EXAMPLES,
    RANDOM_LENGTHS,
    SEEDS,
    WARM_UP,
    WEIGHTINGS,
    after,
    compare,
    explore_weights,
    over_random_tokens,
    over_windows,
    random_tokens,
    shares,
    small_chat,
    weighted_gradient,
)
from gradacc_lessons.lessons.token_weights_figure import CLOSE, LABELLED, WeightFigure, weight_table
from gradacc_lessons.lessons.training import collect, gradient, training_windows
from gradacc_lessons.quiz.predictions import Predicted
from gradacc_lessons.tasks.chat import IGNORED

PATIENCE = 120.0  # seconds; only a hang comes near it


@pytest.fixture(scope="module")
def means() -> pd.DataFrame:
    """What the explorer shows at first."""
    return collect(over_windows(Recipe(1, 8), "means", WARM_UP))


def test_on_random_tokens_a_mean_of_means_points_elsewhere_for_every_seed() -> None:
    data = collect(over_random_tokens("means"))
    assert len(data) >= 20 and set(RANDOM_LENGTHS) == {1, 3, 10, 50}
    assert (data["cosine"] < 0.7).all()
    assert (data["relative_error"] > 1).all()
    assert {int(towards.argmax()) for towards in data["towards"]} == {0}, "it follows the shortest"


def test_the_more_the_lengths_differ_the_further_off_it_is() -> None:
    medians = [
        collect(over_random_tokens("means", lengths))["relative_error"].median()
        for lengths in ((16, 16, 16, 16), (8, 12, 20, 24), (1, 3, 10, 50))
    ]
    assert medians[0] <= ROUNDING and medians[0] < medians[1] < medians[2]


def test_the_cosines_are_those_of_each_micro_batch_by_itself() -> None:
    first = next(over_random_tokens("means", (2, 5)))
    task = random_tokens((2, 5), SEEDS[0])
    model, window = task.build_model(SEEDS[0]), split(task.train, 1)
    own = []
    for batch in window:
        model.zero_grad()
        task.loss_fn(model, batch).backward()
        own.append(gradient(model).clone())
    total = (own[0] + own[1]) / 2
    wanted = [float(functional.cosine_similarity(total, each, dim=0)) for each in own]
    assert first["towards"] == pytest.approx(wanted, rel=1e-12)


def test_on_random_tokens_weighing_by_tokens_agrees_to_rounding_for_every_seed() -> None:
    data = collect(over_random_tokens("tokens"))
    assert len(data) >= 20
    assert (data["relative_error"] <= ROUNDING).all()
    assert {int(towards.argmax()) for towards in data["towards"]} == {3}, "it follows the longest"


def test_on_conversations_the_median_window_is_far_off_and_none_by_tokens(means: pd.DataFrame) -> None:
    by_tokens = collect(over_windows(Recipe(1, 8), "tokens", WARM_UP))
    assert len(means) == len(by_tokens) >= 20
    assert means["relative_error"].median() > 0.5 and means["cosine"].median() < 0.95
    assert (by_tokens["relative_error"] <= ROUNDING).all()
    for weights in by_tokens["weights"]:
        np.testing.assert_allclose(weights, 1, rtol=1e-12)


def test_by_examples_is_a_mean_of_means_where_all_have_b_examples(means: pd.DataFrame) -> None:
    examples = collect(over_windows(Recipe(1, 8), "examples", WARM_UP))
    np.testing.assert_array_equal(examples["relative_error"], means["relative_error"])


def test_an_untrained_model_hides_it_and_a_larger_b_averages_it_out(means: pd.DataFrame) -> None:
    median = means["relative_error"].median()
    assert collect(over_windows(Recipe(1, 8), "means", 0))["relative_error"].median() < median / 3
    assert collect(over_windows(Recipe(4, 4), "means", WARM_UP))["relative_error"].median() < median / 2


@pytest.mark.parametrize("seed", SEEDS)
def test_equal_lengths_leave_nothing_to_weigh(seed: int) -> None:
    task = random_tokens((7, 7, 7), seed)
    assert compare(task.build_model(seed), split(task.train, 1), task, "means")["relative_error"] <= ROUNDING


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_one_forward_with_the_drawn_weight_on_each_token_gives_the_loops_gradient(seed: int) -> None:
    """What the blocks say is what the loop does: a token's weight is that of its loss in one sum over the window."""
    task = random_tokens(seed=seed)
    model, window = task.build_model(seed), split(task.train, 1)
    weights = torch.tensor(compare(model, window, task, "means")["weights"])
    looped = weighted_gradient(model, window, task, "means").clone()
    tokens, labels = task.train
    model.zero_grad()
    losses = functional.cross_entropy(model(tokens).flatten(0, 1), labels.flatten(), reduction="none").view_as(labels)
    (losses * weights[:, None]).sum().div(task.count(task.train)).backward()
    assert float((gradient(model) - looped).norm() / looped.norm()) <= ROUNDING


def test_random_tokens_have_the_lengths_that_are_asked_for() -> None:
    tokens, labels = random_tokens((1, 3, 10, 50)).train
    assert (labels != IGNORED).sum(1).tolist() == [1, 3, 10, 50]
    assert bool((labels[:, 0] == tokens[:, 1]).all()), "a label is the token that follows"


@pytest.mark.parametrize(("_", "weighting"), WEIGHTINGS)
def test_shares_add_up_to_one(_: str, weighting: Any) -> None:
    task = small_chat()
    window = next(training_windows(task, Recipe(2, 5)))
    assert math.fsum(shares(weighting, window, task)) == pytest.approx(1, abs=1e-15)


def test_weighing_by_tokens_is_what_accumulate_does() -> None:
    task, model = small_chat(), after(WARM_UP)
    window = next(training_windows(task, Recipe(1, 6, seed=3)))
    weighted = weighted_gradient(model, window, task, "tokens").clone()
    model.zero_grad()
    accumulate(model, window, task.loss_sum, task.count)
    assert float((gradient(model) - weighted).norm() / weighted.norm()) <= ROUNDING


def test_a_model_is_handed_out_as_a_copy() -> None:
    model = after(0)
    with torch.no_grad():
        next(model.parameters()).zero_()
    assert bool(next(after(0).parameters()).any())


# The explorer -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def explorer() -> Any:
    return explore_weights()


def test_each_control_moves_the_run(explorer: Any) -> None:
    seen = set()
    for values in (
        {"updates": 0, "micro_batch_size": 2, "accumulation_steps": 3},
        {"weighting": "tokens"},
        {"weighting": "examples", "accumulation_steps": 2},
        {"micro_batch_size": 3},
        {"updates": WARM_UP},
    ):
        explorer.set(**values)
        explorer.wait(PATIENCE)
        assert explorer.values.items() >= values.items()
        assert len(explorer.data) == len(SEEDS) == explorer._bar.value
        assert explorer.data.iloc[0].to_dict().items() >= values.items()
        seen.add(explorer.sentence)
    assert len(seen) == 5


def test_impossible_values_are_refused_in_a_sentence(explorer: Any) -> None:
    for impossible, sentence in (
        ({"micro_batch_size": 16, "accumulation_steps": 9}, f"16 x 9 = 144 conversations.*at most {MOST_EXAMPLES}"),
        ({"accumulation_steps": 0}, "whole number from 1 to 16"),
        ({"micro_batch_size": 17}, "whole number from 1 to 16"),
        ({"weighting": "luck"}, "must be one of"),
        ({"updates": 7}, "must be one of"),
    ):
        with pytest.raises(ValueError, match=sentence):
            explorer.set(**impossible)


def test_one_micro_batch_is_right_however_it_is_weighed(explorer: Any) -> None:
    for _, weighting in WEIGHTINGS:
        data = explorer.measure(accumulation_steps=1, micro_batch_size=2, weighting=weighting, updates=0)
        assert (data["relative_error"] <= ROUNDING).all()


def test_an_error_in_the_experiment_is_shown_and_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("no conversations")

    monkeypatch.setattr(token_weights, "compare", broken)
    failing = explore_weights()
    failing.set(updates=0)
    with pytest.raises(RuntimeError, match="no conversations"):
        failing.wait(PATIENCE)
    assert "RuntimeError: no conversations" in failing._message.value


def test_it_waits_for_a_prediction_and_draws_it(predicted: Callable[..., Predicted]) -> None:
    waiting = explore_weights(predicted("uneven-predict-error"))
    assert waiting.waiting
    answered = explore_weights(predicted("uneven-predict-error", 20.0))
    answered.set(updates=0, accumulation_steps=2)
    answered.wait(PATIENCE)
    assert answered.sentence.endswith("You predicted 20 %, for b = 1 and N = 8.")


# The picture ------------------------------------------------------------------------------------------------------


def drawn(data: pd.DataFrame) -> WeightFigure:
    figure = WeightFigure()
    figure.draw(data)
    figure.png()
    return figure


def test_blocks_are_as_wide_as_they_have_tokens_and_as_high_as_one_weighs(means: pd.DataFrame) -> None:
    figure = drawn(means)
    tokens = means["tokens"].iloc[0]
    heights, edges, baseline = figure._blocks.get_data()
    np.testing.assert_allclose(np.diff(edges), tokens)
    np.testing.assert_allclose(heights, tokens.sum() / (len(tokens) * tokens), rtol=1e-12)
    assert baseline == 1
    low, high = figure._window.get_ylim()
    assert low <= heights.min() and heights.max() * 1.07 < high


def test_dots_are_the_windows_and_the_diamond_is_their_median(means: pd.DataFrame) -> None:
    figure = drawn(means)
    x, y = figure._dots.get_data()
    np.testing.assert_allclose(x, 100 * means["relative_error"])
    np.testing.assert_allclose(y, means["cosine"])
    assert figure._median.get_xdata()[0] == pytest.approx(np.median(x))
    assert max(x) <= figure._plane.get_xlim()[1] <= 1.6 * max(10.0, *x), "data fills the axis"


@pytest.mark.parametrize("lengths", [(80, 13, 20, 100, 18, 6, 18, 87), (2, 3, 2, 120), (5, 5, 5, 5, 5, 5, 5, 5)])
@pytest.mark.parametrize("weighting", ["means", "tokens"])
def test_numbers_over_the_blocks_do_not_touch(means: pd.DataFrame, lengths: tuple[int, ...], weighting: str) -> None:
    tokens = np.array(lengths, float)
    weights = tokens.sum() / (len(tokens) * tokens) if weighting == "means" else np.ones(len(tokens))
    row = means.iloc[[0]].assign(tokens=[tokens], weights=[weights])
    figure = drawn(row)
    shown = [words for words in figure._numbers if words.get_text()]
    assert shown and len(lengths) <= LABELLED
    boxes = [words.get_window_extent() for words in shown]
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k]), (CLOSE, lengths)


def test_many_micro_batches_have_no_numbers(means: pd.DataFrame) -> None:
    row = means.iloc[[0]].assign(tokens=[np.full(9, 30.0)], weights=[np.ones(9)])
    assert not any(words.get_text() for words in drawn(row)._numbers)


@pytest.mark.parametrize("guess", [0.0, 3.0, 77.0, 251.0, 384.0, 400.0, 1e6])
def test_a_prediction_is_drawn_whatever_it_is(means: pd.DataFrame, guess: float) -> None:
    figure = WeightFigure()
    assert figure.draw(means.assign(prediction=guess)).endswith(f"You predicted {guess:g} %, for b = 1 and N = 8.")
    assert figure._guess.get_xdata()[0] == guess <= figure._plane.get_xlim()[1]
    assert figure._guess_words.get_text() == f"your prediction: {guess:g} %"
    figure.png()
    words, panel = figure._guess_words.get_window_extent(), figure._plane.get_window_extent()
    assert panel.x0 <= words.x0 and words.x1 <= panel.x1


def test_the_table_has_the_smallest_and_the_largest_by_value(means: pd.DataFrame) -> None:
    table = weight_table(means).set_index("measured")
    errors = 100 * means["relative_error"]
    assert table.loc["distance from the full batch's gradient"].tolist() == [
        f"{errors.min():.0f} %",
        f"{errors.max():.0f} %",
    ]
    assert "rounding only" in weight_table(collect(over_random_tokens("tokens"))).to_string()

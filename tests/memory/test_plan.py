"""What a plan says, what it leaves alone, and how it answers what cannot be planned."""

import copy
import json
import random

import pytest
import torch
from memory.plans import SMALL, examples, planned, small
from memory.small_models import classes, few_words, images, mlp, model, next_word, vectors
from torch import nn
from torch.nn import functional as F

from gradacc_lessons.memory.forecast import Forecast, balanced, smallest_window
from gradacc_lessons.memory.plan import NothingFits, plan
from gradacc_lessons.recipe import Recipe

MADE_BEFORE = small()


@pytest.fixture(scope="module")
def explained():
    """A plan with all its reasons: 24 examples, four micro-batches, really run."""
    parts = model("MLP", None)
    forecast = Forecast(*parts)
    budget = (forecast.peak(202, 5) + forecast.peak(202, 4)) // 2
    return plan(*parts, target_batch_size=202, budget_bytes=budget, forecast=forecast), forecast


def test_it_says_which_window_and_why_not_one_fewer(explained):
    found, _ = explained
    assert found.micro_batch_sizes == (41, 41, 40, 40, 40) and found.accumulation_steps == 5
    first = found.why.splitlines()[0]
    assert first.startswith("It takes 5 micro-batches: 2 of 41 and 3 of 40, predicted peak ")
    assert "With one fewer, 4 micro-batches of up to 51 would need " in first and first.endswith(" too much.")


def test_it_says_what_binds_and_what_more_would_cost(explained):
    found, forecast = explained
    assert found.binding == "turn" and "where forward turns into backward" in found.why
    gradients = sum(p.nbytes for p in mlp().parameters())
    assert forecast.cost_of_accumulating(41) == pytest.approx(gradients, rel=0.02)
    grown = forecast.peak(2 * 45, 2) - forecast.peak(2 * 44, 2) - 2 * (vectors(1)[0].nbytes + vectors(1)[1].nbytes)
    assert forecast.cost_of_an_example(41) == pytest.approx(grown, rel=0.02)
    assert "One more example in a micro-batch costs " in found.why and "the gradients that wait" in found.why


def test_it_says_what_was_measured_and_how_fast_it_was(explained):
    found, _ = explained
    assert found.trials == 1 and "by the events of the CPU's allocator" in found.why
    assert found.measured.peak_bytes == pytest.approx(found.predicted.peak_bytes, rel=0.002)
    assert [size for size, _ in found.throughput][:3] == [1, 2, 4]
    assert all(rate > 0 for _, rate in found.throughput) and "Examples per second here" in found.why


def test_its_options_are_what_the_changed_recipe_is_predicted_to_take(explained):
    found, forecast = explained
    names = {option.name for option in found.options}
    assert "autocast" in names and "the optimizer adafactor" in names and "activation checkpointing" not in names
    for option in found.options:
        again = forecast.variant(**option.changes).peak(202, 5)
        assert option.peak_bytes == again == found.predicted.peak_bytes - option.saved_bytes
        assert option.sentence in found.why


def test_the_profile_it_predicts_adds_up(explained):
    found, _ = explained
    assert sum(found.predicted.by_category.values()) == found.predicted.peak_bytes
    assert found.predicted.timeline["total"].max() == found.predicted.peak_bytes
    inputs = vectors(202)
    assert found.predicted.by_category["inputs"] == sum(tensor.nbytes for tensor in inputs)


def test_it_is_a_table_and_json(explained):
    found, forecast = explained
    assert "micro-batches   2 of 41 and 3 of 40 examples" in str(found)
    read = json.loads(json.dumps(found.as_dict()))
    assert read["micro_batches"] == [{"count": 2, "size": 41}, {"count": 3, "size": 40}]
    assert read["equal_micro_batches"] == {
        "count": 101, "size": 2, "peak_bytes": forecast.peak(202, 101),
    }  # fmt: skip
    assert read["measured"]["peak_bytes"] == found.measured.peak_bytes


def test_checkpointing_is_offered_with_its_price_in_time():
    parts = model("mixture of experts", None)
    forecast = Forecast(*parts)
    found = plan(*parts, target_batch_size=48, budget_bytes=1.01 * forecast.peak(48, 2), forecast=forecast)
    option = next((o for o in found.options if o.name == "activation checkpointing"), None)
    assert option is not None and "times as long" in option.price


def test_where_all_fits_there_is_one_micro_batch_and_a_kernel_may_help():
    found = planned(recipe=Recipe(optimizer="adamw", optimizer_kernel="foreach"), budget="64MiB", explain=True)
    assert found.micro_batch_sizes == (10,) and found.why.startswith("All 10 examples fit at once")
    assert found.binding == "update" and "the optimizer's fused kernel" in {o.name for o in found.options}
    assert found.measured is None and "This is a prediction only: no window was run, as was asked." in found.why


def refuses_autocast(network, batch):
    if torch.is_autocast_enabled("cpu"):
        raise ValueError("my loss cannot be trusted in bfloat16")
    return classes(network, batch)


def test_a_change_that_cannot_be_followed_is_said_and_the_plan_is_made():
    found = planned(loss_fn=refuses_autocast, budget="64MiB", explain=True)
    assert "What autocast would buy cannot be predicted: my loss cannot be trusted in bfloat16." in found.why
    assert "activation checkpointing" not in found.why  # there are no blocks, which is no failure
    assert "The optimizer adafactor would lower" in found.why


def test_initial_values_that_are_drawn_until_they_suit_are_no_hindrance():
    def build():
        network = small()
        nn.init.trunc_normal_(network[0].weight, std=0.02)
        return network

    assert planned(build).predicted.peak_bytes == planned().predicted.peak_bytes
    weight = nn.init.trunc_normal_(torch.zeros(1000), std=0.02)  # outside it draws again
    assert 0 < float(weight.abs().max()) <= 2


def test_where_nothing_fits_it_says_by_how_much_why_and_what_would_help():
    forecast = Forecast(small, classes, examples, SMALL)
    least = forecast.peak(10, 10)
    helped = forecast.variant(optimizer="adafactor").peak(10, 10)
    with pytest.raises(NothingFits) as refused:
        planned(budget=(least + helped) // 2, forecast=forecast, explain=True)
    words = str(refused.value)
    assert words.startswith("no window fits in ") and "even one example at a time, in 10 micro-batches" in words
    assert "too much. The peak comes in the optimizer's update" in words
    assert "The optimizer adafactor would lower the peak by " in words and "and that fits." in words


@pytest.mark.parametrize("target", [1, 2, 3, 5, 7, 12, 97])
def test_sizes_differ_by_at_most_one_and_make_up_the_target(target):
    for count in range(1, target + 1):
        sizes = balanced(target, count)
        assert sum(sizes) == target and len(sizes) == count and sizes[0] - sizes[-1] <= 1
        assert list(sizes) == sorted(sizes, reverse=True)


def test_few_windows_are_followed_even_for_a_large_target():
    forecast = Forecast(small, classes, examples, SMALL)
    budget = Forecast(small, classes, examples, SMALL).peak(100_000, 37)
    count = smallest_window(forecast, 100_000, budget)
    assert count <= 37 and forecast.probes <= 8
    assert forecast.peak(100_000, count) <= budget < forecast.peak(100_000, count - 1)


@pytest.mark.parametrize("target", [2, 3, 10])
def test_one_batch_of_everything_may_fit_where_smaller_micro_batches_do_not(target):
    """Alone, a micro-batch has no gradients of others beside it."""
    forecast = Forecast(small, classes, examples, Recipe(optimizer="sgd"))
    budget = forecast.peak(target, 1)
    assert budget < forecast.peak(target, target)
    fresh = Forecast(small, classes, examples, Recipe(optimizer="sgd"))
    assert smallest_window(fresh, target, budget) == 1


def test_a_batch_that_is_far_too_large_is_never_built():
    asked = []

    def watched(size):
        asked.append(size)
        return vectors(size)

    forecast = Forecast(mlp, classes, watched, SMALL)
    count = smallest_window(forecast, 5000, 14_000_000 + 5000 * 16_392)
    assert count > 50 and max(asked) <= 2 * 5000 / count


def test_a_forecast_is_shared_between_plans():
    forecast = Forecast(small, classes, examples, SMALL)
    first = planned(forecast=forecast, target=64, budget="800KiB")
    followed = forecast.probes
    assert planned(forecast=forecast, target=64, budget="800KiB").micro_batch_sizes == first.micro_batch_sizes
    assert forecast.probes == followed


def test_weights_make_the_mean_of_the_whole_batch():
    """In float64: the weighted micro-batches' gradient is the full batch's."""
    torch.manual_seed(0)
    network = small().double()
    x, y = torch.randn(10, 64, dtype=torch.float64), torch.randint(10, (10,))
    found = planned(target=10, budget=Forecast(small, classes, examples, SMALL).peak(10, 4))
    start = 0
    for size, weight in zip(found.micro_batch_sizes, found.weights, strict=True):
        (weight * classes(network, (x[start : start + size], y[start : start + size]))).backward()
        start += size
    summed = [p.grad.clone() for p in network.parameters()]
    network.zero_grad()
    classes(network, (x, y)).backward()
    for mine, whole in zip(summed, (p.grad for p in network.parameters()), strict=True):
        torch.testing.assert_close(mine, whole, rtol=0, atol=1e-12)


def test_the_callers_things_are_left_alone():
    """Its model, its generators, its default dtype."""
    mine = small().eval()
    before = copy.deepcopy(mine.state_dict())
    torch.manual_seed(7)
    random.seed(7)
    states = torch.get_rng_state(), random.getstate(), torch.get_default_dtype()
    planned(lambda: copy.deepcopy(mine), recipe=Recipe(optimizer="adamw", precision="bfloat16"), verify=True)
    assert torch.equal(torch.get_rng_state(), states[0]) and random.getstate() == states[1]
    assert torch.get_default_dtype() == states[2]
    assert not mine.training and all(p.grad is None for p in mine.parameters())
    assert all(torch.equal(value, before[name]) for name, value in mine.state_dict().items())


def test_batch_norm_that_refuses_single_examples_is_planned_without_them():
    def with_norm():
        return nn.Sequential(nn.Linear(64, 256), nn.BatchNorm1d(256), nn.ReLU(), nn.Linear(256, 10))

    forecast = Forecast(with_norm, classes, examples, SMALL)
    found = planned(with_norm, target=7, budget=1.005 * forecast.peak(7, 3), forecast=forecast, verify=True)
    assert min(found.micro_batch_sizes) >= 2
    with pytest.raises(ValueError, match="only micro-batches of one example may fit, and the model refuses those: "):
        planned(with_norm, target=7, budget="100KiB", forecast=forecast)


def data_dependent(network, batch):
    out = network(batch[0])
    return F.cross_entropy(out if out.sum() > 0 else -out, batch[1])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"budget": "24 GiBs"}, "'24 GiBs' is no size: write a number and a unit"),
        ({"budget": 0}, "the budget must be a number of bytes above 0"),
        ({"budget": float("nan")}, "the budget must be a number of bytes above 0"),
        ({"budget": True}, "the budget must be a number of bytes above 0"),
        ({"budget": None}, "the budget must be a number of bytes above 0"),
        ({"budget": float("inf")}, "the budget must be a number of bytes above 0"),
        ({"budget": -(10**5000)}, "the budget must be a number of bytes above 0"),
        ({"budget": 10**400}, "the budget is more memory than any machine has"),
        ({"budget": "1" + 400 * "0"}, r"'10+\.\.\. is no size"),
        ({"target": 10**5000}, "the target batch counts examples, not tokens; it is more than 10,000,000"),
        ({"target": -(10**5000)}, "the target batch must be a whole number of examples, at least 1; it is a number of"),
        ({"target": 0}, "the target batch must be a whole number of examples, at least 1; it is 0"),
        ({"target": -8}, "the target batch must be a whole number of examples, at least 1; it is -8"),
        ({"target": 2.5}, "the target batch must be a whole number of examples"),
        ({"target": True}, "the target batch must be a whole number of examples"),
        ({"target": 10**9}, "the target batch counts examples, not tokens"),
        ({"make_batch": lambda size: examples(32)}, r"make_batch\(2\) must give a batch of 2 examples"),
        ({"loss_fn": lambda m, b: m(b[0])}, "the loss must be one number"),
        ({"loss_fn": lambda m, b: 1.0}, "the loss must be one number, as a scalar tensor; loss_fn returned a float"),
        ({"loss_fn": data_dependent}, "this model cannot be followed without numbers"),
        ({"recipe": Recipe(checkpointing=True), "build": lambda: nn.Linear(64, 10)}, "has no nn.ModuleList"),
        ({"build": lambda: MADE_BEFORE}, "build_model must make a new model each time"),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else None,
)
def test_what_cannot_be_planned_is_one_sentence(changes, words):
    with pytest.raises(ValueError, match=words) as refused:
        planned(**changes)
    assert "\n" not in str(refused.value)


def test_an_lstm_is_refused_as_its_kernel_hides_memory():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.lstm, self.head = nn.Embedding(1024, 16), nn.LSTM(16, 16), nn.Linear(16, 1024)

        def forward(self, tokens):
            return self.head(self.lstm(self.embed(tokens))[0])

    with pytest.raises(ValueError, match="LSTM"):
        planned(Recurrent, next_word, few_words)


def test_lines_for_no_framework_name_those_there_are():
    with pytest.raises(ValueError, match="loop, huggingface, accelerate, lightning, deepspeed; not for 'keras'"):
        planned().lines("keras")


def test_images_are_planned_too():
    parts = model("CNN with BatchNorm", None)
    forecast = Forecast(*parts)
    found = plan(*parts, target_batch_size=8, budget_bytes=1.01 * forecast.peak(8, 2), forecast=forecast, explain=False)
    assert found.accumulation_steps == 2 and images(1)[0].nbytes * 8 <= found.predicted.by_category["inputs"]


@pytest.mark.parametrize("followed", [((79, 2), (76, 2)), ((77, 2), (75, 2)), ((81, 2), (78, 2))])
def test_windows_of_two_sizes_do_not_hide_that_one_batch_fits(tmp_path, followed):
    """Where gradients are small, the first and larger micro-batch has the peak; elsewhere the second one has it."""
    forecast = Forecast(*model("CNN with BatchNorm", tmp_path))
    for target, accumulation_steps in followed:
        forecast.peak(target, accumulation_steps)
    enough = Forecast(*model("CNN with BatchNorm", tmp_path)).peak(77, 1)
    assert forecast.may_fit_alone(77, enough)
    assert not forecast.may_fit_alone(77, enough // 2)

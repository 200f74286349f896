"""What a plan says, what it leaves alone, and how it answers what cannot be planned."""

import copy
import json
import random

import pytest
import torch
from memory.small_models import classes, few_words, images, mlp, model, next_word, vectors
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn import functional as F

from gradacc_lessons.memory import trial, why
from gradacc_lessons.memory.forecast import Forecast, balanced, smallest_window
from gradacc_lessons.memory.plan import NothingFits, plan
from gradacc_lessons.memory.sizes import readable
from gradacc_lessons.memory.trial import Measured, Trial, fits_here, free_bytes
from gradacc_lessons.recipe import Recipe

SMALL = Recipe(optimizer="adamw")


def small():
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))


MADE_BEFORE = small()


def examples(size):
    return torch.zeros(size, 64), torch.zeros(size, dtype=torch.long)


def planned(build=small, loss_fn=classes, make_batch=examples, recipe=SMALL, *, target=10, budget="1MiB", **wishes):
    wishes = {"verify": False, "explain": False, **wishes}
    return plan(build, loss_fn, make_batch, recipe, target_batch_size=target, budget_bytes=budget, **wishes)


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
    found, _ = explained
    assert "micro-batches   2 of 41 and 3 of 40 examples" in str(found)
    read = json.loads(json.dumps(found.as_dict()))
    assert read["micro_batches"] == [{"count": 2, "size": 41}, {"count": 3, "size": 40}]
    assert read["equal_micro_batches"] == {"count": 101, "size": 2}
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


def test_what_this_machine_has_no_room_for_is_predicted_only(monkeypatch):
    monkeypatch.setattr("gradacc_lessons.memory.trial.free_bytes", lambda device: 1000)
    found = planned(verify=True)
    assert found.measured is None and "this machine has not enough free memory" in found.why


def test_where_free_memory_is_unknown_only_what_is_small_is_run(monkeypatch):
    assert free_bytes(torch.device("cpu")) > 0
    monkeypatch.setattr("gradacc_lessons.memory.trial.free_bytes", lambda device: None)
    assert fits_here(2**30, "cpu") and not fits_here(2**30 + 1, "cpu")


def test_a_run_that_takes_more_than_predicted_lowers_the_micro_batch():
    """A loss that uses three times its memory, but only where it is real."""

    def greedy(model, batch):
        hidden = model(batch[0])
        if not isinstance(hidden, FakeTensor):
            hidden = hidden + torch.zeros(len(hidden), 4096).sum(1, keepdim=True)
        return F.cross_entropy(hidden, batch[1])

    forecast = Forecast(small, greedy, examples, SMALL)
    budget = forecast.peak(512, 2)
    found = planned(loss_fn=greedy, target=512, budget=budget, verify=True, forecast=forecast)
    assert found.accumulation_steps > 2 and found.trials > 1
    assert found.measured.peak_bytes <= budget and found.measured.peak_bytes > found.predicted.peak_bytes
    last = found.accumulation_steps - 1
    really = Trial(forecast).peak(balanced(512, last)).peak_bytes
    assert really > budget and f"With one fewer, {last} micro-batches of up to " in found.why
    assert f" really took {readable(really)}, {readable(really - budget)} too much." in found.why
    with pytest.raises(NothingFits, match="but a real window took more than the budget"):
        planned(loss_fn=greedy, target=4, budget=forecast.peak(4, 4), verify=True, forecast=forecast)


@pytest.mark.parametrize("beyond", [lambda n: 3, lambda n: 1 + 60 / n, lambda n: 1 + (n < 61) * 2])
def test_real_runs_end_at_the_fewest_micro_batches_that_fit(beyond, monkeypatch):
    """However the real peaks lie above the predicted ones, the window with one micro-batch fewer was run as well."""
    forecast = Forecast(small, classes, examples, SMALL)

    def real(sizes):
        predicted = forecast.peak(2000, len(sizes))
        return int((predicted - forecast.peak(2000, 2000)) * beyond(len(sizes))) + forecast.peak(2000, 2000)

    monkeypatch.setattr(Trial, "peak", lambda self, sizes: Measured(real(sizes), "a curve", 2))
    budget = forecast.peak(2000, 23)
    found = planned(target=2000, budget=budget, verify=True, forecast=forecast)
    n = found.accumulation_steps
    assert n > 23 and real(balanced(2000, n)) <= budget < real(balanced(2000, n - 1))
    assert f"With one fewer, {n - 1} micro-batches of up to {-(-2000 // (n - 1))} really took " in found.why
    assert found.trials <= 10


class Frozen(nn.Module):
    """A frozen trunk with large results, and a small head that is trained."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 4096), nn.ReLU(), nn.Linear(4096, 8)).requires_grad_(False)
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        return self.head(self.trunk(x))


class Table(nn.Module):
    """An embedding whose gradient is much larger than all activations."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(20_000, 32), nn.Linear(32, 10)

    def forward(self, tokens):
        return self.head(self.embed(tokens).mean(1))


def tokens(size):
    return torch.zeros(size, 4, dtype=torch.long), torch.zeros(size, dtype=torch.long)


def test_the_peak_of_a_frozen_trunk_is_in_a_forward():
    forecast = Forecast(Frozen, classes, examples, Recipe())
    assert forecast.profile(512, 4).phase == "forward"
    found = planned(Frozen, classes, examples, target=512, budget=forecast.peak(512, 4), forecast=forecast)
    assert found.binding == "forward"
    said = why.why_here(forecast, 512, 4)
    assert said.startswith("The peak comes in a forward, while results are there that backward does not need")
    assert "a smaller micro-batch lowers it" in said
    assert forecast.cost_of_an_example(128) == pytest.approx(2 * 4096 * 4, rel=0.02)


@pytest.mark.parametrize(("count", "set_to_none"), [(1, True), (4, True), (1, False)])
def test_gradients_of_before_are_named_only_where_there_are_any(count, set_to_none):
    forecast = Forecast(Table, classes, tokens, Recipe(set_to_none=set_to_none))
    said = why.why_here(forecast, 16, count)
    before = count > 1 or not set_to_none
    assert said.startswith("The peak comes further on in backward, when most saved activations are gone and ")
    assert ("fresh gradients come beside those of before" in said) == before
    assert ("the gradients come; " in said) != before
    assert "a smaller micro-batch hardly lowers it" in said  # 2 KiB an example, beside 2.4 MiB of gradients
    assert forecast.cost_of_an_example(16) < 4096


def test_checkpointing_is_not_said_to_keep_all_activations():
    parts = model("GPT, tied", None)
    assert parts[3].checkpointing
    said = why.why_here(Forecast(*parts), 8, 2)
    assert "the inputs of the checkpointed blocks are there" in said and "most saved activations" not in said


def test_a_single_example_is_not_told_to_shrink():
    forecast = Forecast(small, classes, examples, SMALL)
    assert "smaller micro-batch" not in why.why_here(forecast, 8, 8)
    assert "smaller micro-batch" in why.why_here(forecast, 8, 4)


def test_what_adding_up_costs_and_why():
    """With kept gradients nothing, whatever binds; in the update nothing; else what the gradients take, or less."""
    kept = Forecast(mlp, classes, vectors, Recipe(set_to_none=False))
    assert kept.profile(128, 2).phase == "backward" and kept.cost_of_accumulating(64) == 0
    said = why.what_more_costs(kept, 128, 2)
    assert said.endswith("costs nothing: with set_to_none=False the gradients are in memory all the time.")
    free = Forecast(mlp, classes, vectors, Recipe())
    assert why.what_more_costs(free, 128, 2).endswith("more than one alone: the gradients that wait for the others.")
    gradients = sum(p.nbytes for p in mlp().parameters())
    update = Forecast(mlp, classes, vectors, SMALL)
    assert update.profile(4, 2).phase == "update" and update.cost_of_accumulating(2) == 0
    waiting = f"the gradients that wait for the others take {readable(gradients)}"
    assert f"costs nothing: {waiting}, but in the update all of them" in why.what_more_costs(update, 4, 2)
    size = next(size for size in range(4, 200) if 0 < update.cost_of_accumulating(size) < 0.9 * gradients)
    said = why.what_more_costs(update, 2 * size, 2)
    assert f"costs {readable(update.cost_of_accumulating(size))} more than one alone: {waiting}, but " in said
    assert update.profile(size, 1).phase == "update" and "one alone has its peak in the update" in said


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


@pytest.mark.parametrize(
    ("device", "words"),
    [("cuda", "CUDA"), ("cuda:1", "CUDA:1"), ("mps", "MPS")],
)
def test_a_device_that_is_not_here_is_predicted_for_only(device, words, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    found = planned(device=device, verify=True)
    assert found.measured is None and f"This is a prediction only: there is no {words} device here." in found.why


@pytest.mark.parametrize("device", ["tpu", "meta", "xpu:0"])
def test_a_device_that_nothing_is_planned_for_is_refused(device):
    with pytest.raises(ValueError, match=f"plans are made for cpu, cuda, mps; not for the device '{device}'"):
        planned(device=device)


def test_memory_that_only_keeps_files_counts_as_free(tmp_path, monkeypatch):
    machine = tmp_path / "meminfo"
    machine.write_text("MemTotal: 4000 kB\nMemFree: 100 kB\nMemAvailable: 3000 kB\n")
    monkeypatch.setattr(trial, "MEMORY_OF_THE_MACHINE", machine)
    monkeypatch.setattr(trial, "GROUP", tmp_path)
    cpu = torch.device("cpu")
    assert free_bytes(cpu) == 3000 * 1024
    for name, content in (("max", "1000000"), ("current", "900000"), ("stat", "anon 5\ninactive_file 300000\n")):
        (tmp_path / f"memory.{name}").write_text(content)
    assert free_bytes(cpu) == 400_000
    (tmp_path / "memory.max").write_text("max\n")
    assert free_bytes(cpu) == 3000 * 1024
    machine.unlink()
    monkeypatch.setattr("os.sysconf", {"SC_AVPHYS_PAGES": 7, "SC_PAGE_SIZE": 4096}.get, raising=False)
    assert free_bytes(cpu) == 7 * 4096


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
    ids=lambda value: value if isinstance(value, str) else None,
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

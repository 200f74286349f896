"""What is said about the limits of a verdict."""

import pytest
import torch
from detective.examination import pairs_edges
from detective.examination.pairs import Parts, batch, cross_entropy, mlp
from torch import Tensor, nn

from gradacc_lessons import Examination, examine
from gradacc_lessons.detective.examination import reach
from gradacc_lessons.detective.examine import ExamineError


def _found(parts: Parts) -> Examination:
    return examine(parts.model, parts.loss_fn, parts.batch, parts.micro_batch_size)


SAID = {
    pairs_edges.a_head_of_zeros_before_the_mean_prediction: ("happen to agree", "toevallig gelijk"),
    pairs_edges.batch_first_forgotten: ("Give batch_first=True.", "Geef batch_first=True."),
    pairs_edges.hooks_that_clip_each_gradient: ("hooks on 0.weight, 0.bias, 2.weight and 1 more", "en nog 1"),
    pairs_edges.draws_that_almost_never_matter: ("in 17 runs with other seeds none changed", "in 17 runs met andere"),
    pairs_edges.batch_norm_of_examples_that_are_equal: ("All examples in this batch are equal", "zijn gelijk"),
}


@pytest.mark.parametrize("build", SAID, ids=lambda build: build.__name__)
def test_the_words_say_what_was_seen_and_what_not(build) -> None:
    torch.manual_seed(0)
    found = _found(build())
    english, dutch = SAID[build]
    assert english in found.to("en") and dutch in found.to("nl")


def test_a_usual_batch_has_no_notes() -> None:
    assert examine(mlp(), cross_entropy, batch(), 2).message.count("\n") == 0


def test_low_precision_shows_the_numbers_that_were_lost_also_beside_state() -> None:
    torch.manual_seed(0)

    class Seen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.seen.lerp_(x.detach().abs().mean().to(self.seen), 0.1)
            return x

    x, y = batch()
    found = examine(mlp(Seen()).bfloat16(), cross_entropy, (x.bfloat16(), y), 1)
    assert found.causes == ("module_state", "low_precision") and 1e-4 < found.relative_error < 0.05


def test_what_runs_after_accumulation_is_said_not_to_be_examined() -> None:
    model = mlp()
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda p: p.grad.clamp_(-0.01, 0.01) and None)
    found = examine(model, cross_entropy, batch(), 2)
    assert "was not examined" in found.message and found.evidence["hooks_after"][0] == "0.weight"


def test_a_walk_that_ends_early_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "MOST_OBJECTS", 10)
    assert "more objects than were looked at" in examine(mlp(), cross_entropy, batch(), 2).message


def test_modules_are_met_before_a_data_set() -> None:
    teacher, data = mlp(), [(k, k % 7, 1.0) for k in range(50_000)]

    def loss(model: nn.Module, rows: tuple[Tensor, Tensor]) -> Tensor:
        assert data
        return nn.functional.mse_loss(model(rows[0]), teacher(rows[0]).detach())

    found = reach.Reach({"": mlp(), "loss_fn": loss})
    assert any(module is teacher for module in found.modules.values()) and len(found.places) < 200


def test_a_file_named_like_one_of_pythons_is_the_users(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sndhdr.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "sndhdr", raising=False)
    __import__("sndhdr")
    assert not reach.is_library("sndhdr")
    assert all(map(reach.is_library, ("os.path", "sys", "torch.nn", "collections")))


def test_an_optimizers_state_goes_by_the_names_of_the_parameters() -> None:
    model, data = mlp(), batch()
    optimizer = torch.optim.Adam(model.parameters())

    def loss(model: nn.Module, rows: tuple[Tensor, Tensor]) -> Tensor:
        optimizer.zero_grad()
        cross_entropy(model, rows).backward()
        optimizer.step()
        return cross_entropy(model, rows)

    state = examine(model, loss, data, 2).evidence["state"]
    assert any(name.endswith("0.weight.exp_avg") for name in state) and max(map(len, state)) < 60


def test_parameters_that_only_some_micro_batches_reach() -> None:
    class OneOrMany(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.single, self.many = nn.Linear(6, 3), nn.Linear(6, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.single(x) if len(x) == 1 else self.many(x)

    images, labels = torch.randn(7, 6), torch.arange(7) % 3
    found = examine(OneOrMany(), cross_entropy, (images, labels), 3)
    assert not found.additive and {"single.weight", "many.weight"} <= set(found.table["parameter"])


def test_a_number_may_take_the_place_of_a_tensor_in_what_the_loss_remembers() -> None:
    class Remembers:
        last = torch.zeros(3)

        def __call__(self, model: nn.Module, rows: tuple[Tensor, Tensor]) -> Tensor:
            loss = cross_entropy(model, rows)
            self.last = float(loss.detach())
            return loss

    remembers = Remembers()
    remembers.last = torch.ones(3)
    assert examine(mlp(), remembers, batch(), 2).additive
    assert torch.equal(remembers.last, torch.ones(3))


def test_what_nobody_has_thought_of_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("something\nof torch's")

    monkeypatch.setattr("gradacc_lessons.detective.examine.investigate", fails)
    with pytest.raises(ExamineError, match=r"cannot be examined: RuntimeError: something$"):
        examine(mlp(), cross_entropy, batch(), 2)

"""The lines to paste are run where what they are for is installed, and say what was planned."""

import ast
import builtins

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from gradacc_lessons.memory.paste import (
    FRAMEWORKS,
    accelerate,
    deepspeed,
    huggingface,
    lightning,
    loop,
)
from gradacc_lessons.recipe import Recipe

RECIPES = [
    Recipe(optimizer="adamw", precision="autocast", max_norm=1.0, checkpointing=True),
    Recipe(optimizer="momentum"),
    Recipe(optimizer="adam", precision="bfloat16"),
    Recipe(optimizer="adafactor", precision="float64"),
    Recipe(optimizer="adamw", optimizer_kernel="fused"),
]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.optimizer)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_framework_gets_code_with_the_planned_sizes(framework, recipe):
    text = FRAMEWORKS[framework](32, 8, recipe)
    ast.parse(text)
    assert "32" in text and "8" in text
    assert ("checkpointing_enable" in text or "gradient_checkpointing=True" in text) == recipe.checkpointing


def test_deepspeeds_sizes_multiply_to_the_target():
    names = {}
    exec(deepspeed(32, 8, RECIPES[0].__class__(max_norm=0.5)), names)
    config = names["config"]
    assert config["train_batch_size"] == 256
    assert config["train_micro_batch_size_per_gpu"] * config["gradient_accumulation_steps"] == 256
    assert config["gradient_clipping"] == 0.5 and "bf16" not in config
    exec(deepspeed(4, 2, Recipe(precision="bfloat16")), names)
    assert names["config"]["bf16"] == {"enabled": True}


class Dicts(nn.Linear):
    """It takes its batches as transformers' models do."""

    def forward(self, x, y=None):
        out = super().forward(x)
        return out if y is None else F.cross_entropy(out, y)


@pytest.mark.parametrize("as_dicts", [False, True], ids=["tuples", "dicts"])
@pytest.mark.parametrize("recipe", [Recipe(max_norm=0.1), Recipe(set_to_none=False)], ids=["clipped", "kept"])
def test_the_loop_has_the_gradient_of_the_whole_batch(as_dicts, recipe):
    """The lines themselves, on float64: the gradient at the update, and the weights after it, are the full batch's."""
    torch.manual_seed(0)
    x, y = torch.randn(10, 4, dtype=torch.float64), torch.randint(3, (10,))
    model, whole = Dicts(4, 3).double(), Dicts(4, 3).double()
    whole.load_state_dict(model.state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    gradients = []
    optimizer.register_step_pre_hook(lambda *_: gradients.extend(p.grad.clone() for p in model.parameters()))
    rows = list(zip(x, y, strict=True))

    def loss_fn(network, batch):
        return network(**batch) if as_dicts else F.cross_entropy(network(batch[0]), batch[1])

    data = [{"x": row, "y": label} for row, label in rows] if as_dicts else rows
    exec(loop([4, 3, 3], recipe), {"data": data, "model": model, "loss_fn": loss_fn, "optimizer": optimizer})
    F.cross_entropy(whole(x), y).backward()
    if recipe.max_norm:
        nn.utils.clip_grad_norm_(whole.parameters(), recipe.max_norm)
    for mine, right in zip(gradients, whole.parameters(), strict=True):
        torch.testing.assert_close(mine, right.grad, rtol=0, atol=1e-12)
    torch.optim.SGD(whole.parameters(), lr=0.5).step()
    for mine, right in zip(model.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(mine, right, rtol=0, atol=1e-12)
    assert all((p.grad is None) == recipe.set_to_none for p in model.parameters())


def test_the_loop_computes_in_bfloat16_where_that_was_planned():
    seen = []

    def loss_fn(network, batch):
        seen.append(network(batch[0]).dtype)
        return F.cross_entropy(network(batch[0]).float(), batch[1])

    model = nn.Linear(4, 3)
    data = [(torch.randn(4), torch.tensor(k % 3)) for k in range(5)]
    names = {"data": data, "model": model, "loss_fn": loss_fn, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1)}
    exec(loop([3, 2], Recipe(precision="autocast")), names)
    assert seen == [torch.bfloat16] * 2


@pytest.mark.parametrize("framework", [*FRAMEWORKS, "loop"])
def test_no_lines_drop_a_precision_silently(framework):
    text = loop([4, 4], Recipe(precision="float64")) if framework == "loop" else FRAMEWORKS[framework](
        4, 2, Recipe(precision="float64"))  # fmt: skip
    assert "64-true" in text if framework == "lightning" else "model.to(torch.float64)" in text
    assert framework != "deepspeed" or "no entry for float64: convert the model before deepspeed.initialize" in text


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.optimizer)
@pytest.mark.parametrize("framework", [*FRAMEWORKS, "loop"])
def test_what_the_lines_use_they_import(framework, recipe):
    tree = ast.parse(loop([4, 4], recipe) if framework == "loop" else FRAMEWORKS[framework](4, 2, recipe))
    bound = {"model", "optimizer", "loss_fn", "data"} | set(dir(builtins))
    bound |= {a.asname or a.name for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names}
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
    assert {node.id for node in names} <= bound


def applied(framework, examples, tmp_path):
    """The gradient at each update of one epoch in micro-batches of 4, N = 4; right is the mean of `examples`, 1."""
    data = [torch.ones(1)] * examples
    model = nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    seen = []
    # After and not before: Lightning runs the last backward of a window inside optimizer.step().
    optimizer.register_step_post_hook(lambda *_: seen.append(model.weight.grad.item()))
    names = {"data": data, "model": model, "optimizer": optimizer, "loss_fn": lambda network, x: network(x).mean()}
    exec(FRAMEWORKS[framework](4, 4, Recipe()).replace("TrainingArguments(", TRAINER), names)
    if framework == "lightning":
        from lightning.pytorch import LightningModule

        class Module(LightningModule):
            def __init__(self):
                super().__init__()
                self.inner = model

            def training_step(self, x):
                return self.inner(x).mean()

            def configure_optimizers(self):
                return optimizer

        names["trainer"].fit_loop.max_epochs = 1
        names["trainer"].fit(Module(), names["loader"])
    if framework == "huggingface":
        from transformers import Trainer

        class Mean(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = model

            def forward(self, x):
                return {"loss": self.inner(x).mean()}

        rows = [{"x": x} for x in data]
        Trainer(Mean(), names["args"], train_dataset=rows, optimizers=(optimizer, None)).train()
    return seen


TRAINER = "TrainingArguments(num_train_epochs=1, use_cpu=True, report_to=[], output_dir='out',"


@pytest.mark.long
@pytest.mark.parametrize(("framework", "updates"), [("accelerate", 2), ("lightning", 2), ("huggingface", 3)])
@pytest.mark.parametrize("examples", [40, 42], ids=["short window", "short micro-batch"])
def test_no_update_is_too_small(framework, updates, examples, tmp_path, monkeypatch):
    """Ten micro-batches make two windows of four and a short one: dropped, or divided by what it has."""
    pytest.importorskip({"huggingface": "transformers"}.get(framework, framework))
    monkeypatch.chdir(tmp_path)
    assert applied(framework, examples, tmp_path) == [1.0] * updates


@pytest.mark.long
@pytest.mark.parametrize("framework", ["accelerate", "lightning"])
def test_what_an_epoch_leaves_out_differs_from_epoch_to_epoch(framework, tmp_path, monkeypatch):
    pytest.importorskip(framework)
    monkeypatch.chdir(tmp_path)
    model = nn.Linear(1, 1)
    names = {"data": torch.arange(40.0).reshape(40, 1), "model": model, "loss_fn": lambda network, x: network(x).mean()}
    names["optimizer"] = torch.optim.SGD(model.parameters(), lr=0.0)
    exec(FRAMEWORKS[framework](4, 4, Recipe()), names)
    epochs = [torch.cat(list(names["loader"])).flatten().tolist() for _ in range(2)]
    assert all(len(epoch) == len(set(epoch)) == 32 for epoch in epochs)
    assert set(epochs[0]) != set(epochs[1])


@pytest.mark.long
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.optimizer)
def test_transformers_takes_its_line(recipe, tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.chdir(tmp_path)
    names = {"model": nn.Linear(2, 2)}
    text = huggingface(4, 3, recipe)
    if not torch.cuda.is_available():  # without a GPU, transformers wants to hear that this is meant
        text = text.replace("bf16=True,", "bf16=True, use_cpu=True,")
    exec(text, names)
    made = names["args"]
    assert made.train_batch_size * made.gradient_accumulation_steps == 12
    assert made.bf16 == (recipe.precision == "autocast") and made.gradient_checkpointing == recipe.checkpointing
    assert made.max_grad_norm == (recipe.max_norm or 0.0)


@pytest.mark.long
def test_accelerate_takes_its_lines():
    pytest.importorskip("accelerate")
    data = [(torch.randn(4), torch.tensor(k % 3)) for k in range(24)]
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    calls = []
    names = {
        "data": data, "model": model, "optimizer": optimizer,
        "loss_fn": lambda network, batch: calls.append(len(batch[0])) or F.cross_entropy(network(batch[0]), batch[1]),
    }  # fmt: skip
    before = model.weight.clone()
    exec(accelerate(4, 3, Recipe(max_norm=1.0)), names)
    assert calls == [4] * 6 and not torch.equal(before, model.weight)
    assert names["accelerator"].gradient_accumulation_steps == 3


@pytest.mark.long
@pytest.mark.parametrize("precision", ["float32", "float64", "bfloat16", "autocast"])
def test_lightning_takes_its_lines(precision, tmp_path, monkeypatch):
    pytest.importorskip("lightning")
    monkeypatch.chdir(tmp_path)
    names = {"data": [torch.zeros(1)] * 12}
    exec(lightning(4, 3, Recipe(precision=precision, max_norm=1.0)), names)
    assert names["trainer"].accumulate_grad_batches == 3 and names["trainer"].gradient_clip_val == 1.0
    assert names["loader"].batch_size == 4

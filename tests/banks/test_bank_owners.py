"""Who divides by N: each framework that is installed is run, and its option is right exactly if it did not divide."""

import pytest
import torch
from banks.course_content import question
from torch import Tensor, nn

N = 8
MEAN = 3.0
"""The gradient of every micro-batch's mean loss, so that .grad says at once how often somebody divided."""
OPTIONS = {option.id: option for option in question("scale-owner").options}
UNTESTED_HERE = {"deepspeed", "trainer"}
"""Not among the packages that the tests install; lesson 11 runs them."""


def model_and_batch() -> tuple[nn.Module, Tensor]:
    return nn.Linear(1, 1, bias=False), torch.full((4, 1), MEAN)


def you_divide(accumulated: float) -> bool:
    """Whether N undivided mean losses were simply added up."""
    assert accumulated in (pytest.approx(N * MEAN), pytest.approx(MEAN)), accumulated
    return accumulated == pytest.approx(N * MEAN)


def grad(model: nn.Module) -> float:
    (weight,) = model.parameters()
    assert weight.grad is not None
    return float(weight.grad)


def test_plain_pytorch() -> None:
    model, batch = model_and_batch()
    for _ in range(N):
        model(batch).mean().backward()
    assert you_divide(grad(model)) == OPTIONS["raw"].correct


def test_accelerate() -> None:
    accelerate = pytest.importorskip("accelerate")
    model, batch = model_and_batch()
    accelerator = accelerate.Accelerator(gradient_accumulation_steps=N, cpu=True)
    model = accelerator.prepare(model)
    for _ in range(N):
        with accelerator.accumulate(model):
            accelerator.backward(model(batch).mean())
    assert you_divide(grad(model)) == OPTIONS["accelerate"].correct


def test_fabric() -> None:
    lightning = pytest.importorskip("lightning")
    model, batch = model_and_batch()
    fabric = lightning.Fabric(accelerator="cpu", devices=1)
    wrapped = fabric.setup(model)
    for k in range(N):
        with fabric.no_backward_sync(wrapped, enabled=k < N - 1):
            fabric.backward(wrapped(batch).mean())
    assert you_divide(grad(model)) == OPTIONS["fabric"].correct


@pytest.mark.parametrize("option_id", ["lightning-auto", "lightning-manual"])
def test_lightning(option_id: str) -> None:
    lightning = pytest.importorskip("lightning")
    manual = option_id == "lightning-manual"
    used: list[float] = []

    class Module(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.automatic_optimization = not manual
            self.layer, _ = model_and_batch()

        def training_step(self, batch: Tensor, index: int) -> Tensor:
            loss = self.layer(batch).mean()
            if manual:
                self.manual_backward(loss)
                if index == N - 1:
                    self.optimizers().step()
            return loss

        def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
            used.append(grad(self.layer))

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    accumulation = {} if manual else {"accumulate_grad_batches": N}
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **accumulation,
    )
    _, batch = model_and_batch()
    trainer.fit(Module(), torch.utils.data.DataLoader(torch.cat([batch] * N), batch_size=len(batch)))
    (at_the_update,) = used
    assert you_divide(at_the_update) == OPTIONS[option_id].correct


def test_every_option_is_run_here_or_said_not_to_be() -> None:
    run = {"raw", "accelerate", "fabric", "lightning-auto", "lightning-manual"}
    assert set(OPTIONS) == run | UNTESTED_HERE

"""What happened, in order: by hand and under frameworks, N = 4 with 10 micro-batches over two epochs."""

import logging
import warnings
from pathlib import Path

import pytest
import torch
from detective.tape import right_loops
from detective.tape.bench import EPOCHS, LENGTH, WINDOWS, N, batches, ids, kinds, lengths, net, taped
from torch import Tensor, nn
from torch.nn import functional as F

from gradacc_lessons import Tape

MICRO_BATCH = ["forward", "backward"]


def _check(tape: Tape, after: list[str]) -> None:
    """Every window has its micro-batches and then, once, what follows them; what comes last may be seen later."""
    assert lengths(tape) == WINDOWS
    assert [window.micro_batches for window in tape.windows[:3]] == [(1, 2, 3, 4), (5, 6, 7, 8), (9, 10)]
    assert [window.items for window in tape.windows] == [2 * length for length in WINDOWS]
    for number, length in enumerate(WINDOWS, start=1):
        seen = [kind for kind in kinds(tape, number) if kind in (*MICRO_BATCH, *after)]
        assert seen == MICRO_BATCH * length + after
    updates = [event for event in tape.events if event.kind == "update"]
    assert list(dict.fromkeys(event.micro_batch for event in updates)) == [4, 8, 10, 14, 18, 20]
    assert len([event for event in tape.events if event.kind == "backward"]) == LENGTH * EPOCHS


def test_by_hand() -> None:
    _check(right_loops.by_hand(), ["update", "zero_grad"])


def test_clipped_and_scheduled() -> None:
    tape = right_loops.clipped_and_scheduled()
    _check(tape, ["clip", "update", "zero_grad", "schedule"])
    rates = [event.rate for event in tape.events if event.kind == "update"]
    assert rates == pytest.approx([0.1 * 0.9**k for k in range(6)])
    assert all(event.norm == pytest.approx(0.1, rel=1e-4) for event in tape.events if event.kind == "clip")


def test_grad_scaler() -> None:
    tape = right_loops.grad_scaler_that_is_given()
    _check(tape, ["unscale", "clip", "update", "zero_grad"])
    assert all(event.factor == 2**-16 for event in tape.events if event.kind == "unscale")
    assert all(0 < (event.factor or 0) <= 1 for event in tape.events if event.kind == "clip")


@pytest.mark.parametrize("name", ["grad_scaler_that_skips", "grad_scaler_and_fused_that_skips"])
def test_a_window_with_an_inf_is_skipped(name: str) -> None:
    windows = getattr(right_loops, name)().windows
    assert [window.outcome for window in windows] == ["updated", "skipped", "updated", "updated", "skipped", "updated"]
    assert [len(window.fresh) for window in windows] == WINDOWS
    factors = [event.factor for window in windows for event in window.of("unscale") if window.outcome == "updated"]
    assert factors == [2**-16, 2**-15, 2**-15, 2**-14]


def test_two_optimizers_make_one_update() -> None:
    _check(right_loops.two_optimizers(), ["update", "update", "zero_grad"])


def test_lbfgs_closures() -> None:
    tape = right_loops.lbfgs()
    assert lengths(tape) == WINDOWS[:3]
    assert all(event.closure for event in tape.events if event.kind == "update")


def test_windows_of_other_lengths() -> None:
    assert lengths(right_loops.windows_that_span_epochs()) == [4] * 5
    assert lengths(right_loops.epochs_shorter_than_a_window()) == [3] * 4
    assert lengths(right_loops.sharpness_aware()) == [1] * LENGTH


def test_a_pair_of_models() -> None:
    judge, generator = right_loops.gan_discriminator(), right_loops.gan_generator()
    assert lengths(judge) == lengths(generator) == WINDOWS
    assert sum(event.through for event in judge.events if event.kind == "backward") == LENGTH * EPOCHS


def test_parts_have_items_too_and_without_forwards_there_are_none() -> None:
    assert right_loops.parts_called_one_by_one().windows[0].items == 8
    silent = right_loops.never_called()
    assert silent.windows[0].items is None
    assert any("only backwards are seen" in question.en for question in silent.questions)


def test_averages_and_statistics_have_lanes_of_their_own() -> None:
    statistics = [event for event in right_loops.batch_norm().events if event.kind == "buffers"]
    assert len(statistics) == LENGTH * EPOCHS and {event.during for event in statistics} == {"forward"}
    averages = [event for event in right_loops.average_per_update().events if event.kind == "watched"]
    assert [event.micro_batch for event in averages] == [4, 8, 10, 14, 18, 20]


# -- frameworks: they build their optimizer themselves ---------------------------------------------------------


def _examples() -> list[dict[str, Tensor]]:
    return [{"x": x[0], "labels": labels[0]} for x, labels in batches(2 * LENGTH, size=1)]


def test_trainer(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    model = net()
    arguments = transformers.TrainingArguments(
        str(tmp_path), per_device_train_batch_size=2, gradient_accumulation_steps=N, num_train_epochs=EPOCHS,
        max_grad_norm=0.1, report_to=[], save_strategy="no", logging_strategy="no", use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    with taped(model) as tape:
        transformers.Trainer(model, arguments, train_dataset=_examples()).train()
    _check(tape, ["clip", "update", "zero_grad", "schedule"])
    assert tape.findings == []
    factors = [event.factor for event in tape.events if event.kind == "backward"]
    assert factors == pytest.approx(([0.25] * 8 + [0.5] * 2) * EPOCHS)


def test_accelerate() -> None:
    accelerate = pytest.importorskip("accelerate")
    model = net()
    with taped(model) as tape:
        accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=N)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: 0.9**update)
        loader = torch.utils.data.DataLoader(_examples(), batch_size=2)  # type: ignore[arg-type]
        model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
        for _ in range(EPOCHS):
            for batch in loader:
                with accelerator.accumulate(model):
                    accelerator.backward(model(**batch)["loss"])
                    if accelerator.sync_gradients:
                        accelerator.clip_grad_norm_(model.parameters(), 0.1)
                    optimizer.step()
                    scheduler.step()
                    optimizer.zero_grad()
    # The first move of the schedule is not seen: which optimizer it belongs to shows at the first update.
    _check(tape, ["clip", "update", "zero_grad"])
    assert ids(tape) == ["tail_underscaled"]


def test_lightning() -> None:
    lightning = pytest.importorskip("lightning.pytorch")

    class Lit(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = net()

        def training_step(self, batch: dict[str, Tensor], _: int) -> Tensor:
            loss: Tensor = self.net(**batch)["loss"]
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), 0.1)

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    module = Lit()
    with warnings.catch_warnings(), taped(module) as tape:
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(
            accelerator="cpu", devices=1, max_epochs=EPOCHS, accumulate_grad_batches=N, gradient_clip_val=0.1,
            logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
        )  # fmt: skip
        trainer.fit(module, torch.utils.data.DataLoader(_examples(), batch_size=2))  # type: ignore[arg-type]
    # Lightning zeroes before the first backward of the next window.
    _check(tape, ["clip", "update"])
    assert ids(tape) == ["tail_underscaled"]


def test_count_gets_what_the_model_is_called_with() -> None:
    model = nn.Embedding(10, 4)
    with taped(model, count=lambda tokens: int((tokens != 0).sum())) as tape:
        model(torch.tensor([[1, 2, 0], [3, 0, 0]])).sum().backward()
    assert tape.windows[0].items == 3
    model, (x, labels) = net(), batches()[0]
    with taped(model, count=lambda keywords: len(keywords["labels"]) + 5) as tape:
        model(x=x, labels=labels)["loss"].backward()
    assert tape.windows[0].items == 7
    with taped(model, count=lambda arguments: len(arguments[1])) as tape:
        F.mse_loss(model(x, labels)["loss"], torch.zeros(())).backward()
    assert tape.windows[0].items == 2

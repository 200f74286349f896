"""How close a prediction of memory comes, what it costs, and what a measurement costs."""

import json
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

from benchmarks.row import NotHere, Row, in_turns, median_row, timed

HERE = Path(__file__).resolve().parent.parent
MEBIBYTE = 2**20


def memory_predicted(quick: bool) -> list[Row]:
    """Memory is predicted, and measured on the CPU.

    Ten models with eight recipes each: every optimizer and kernel, float32, autocast and bfloat16 parameters, with
    and without checkpointing, clipping and kept gradients, N from 1 to 4, one example and many. Seed 0 draws which of
    them meet. `predict_peak` is compared with the events of PyTorch's own CPU allocator in the second window of a
    real run. Below 0 % means that less was predicted than was needed.
    """
    return _rows(quick, "cpu")


def memory_predicted_cuda(quick: bool) -> list[Row]:
    """Memory is predicted, and measured on CUDA.

    The same table, with the card's own counter of allocated memory (`torch.cuda.max_memory_allocated`) in place of
    the CPU allocator's events. A prediction counts the CPU's kernels, and nothing in it is fitted to a card.
    """
    import torch

    if not torch.cuda.is_available():
        raise NotHere("not measured: there is no CUDA device here")
    return _rows(quick, "cuda")


def memory_of_seven_billion(quick: bool) -> list[Row]:
    """The memory of a model that does not fit here is predicted.

    `predict_peak` for transformers' `LlamaConfig()` (6.7 billion parameters) in bfloat16 with 2,048 tokens, N = 2 and
    AdamW, in a fresh process. The import of transformers and of the model's code is not in it. Extra memory is how
    far the process grows meanwhile. (A quick run has 2 layers instead of 32, and 256 tokens.)
    """
    command = [sys.executable, "-c", f"from benchmarks.memory import seven_billion; seven_billion({quick})"]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=HERE).stdout
    seconds, before, extra, peak = json.loads(printed.splitlines()[-1])
    return [
        Row("predicted peak", peak / 2**30, "GiB"),
        Row("time", seconds, "s", at_most=10),
        Row("memory of the process before", before / MEBIBYTE, "MiB"),
        Row("extra memory", extra / MEBIBYTE, "MiB", at_most=100),
    ]


def memory_measured(quick: bool) -> list[Row]:
    """A run is watched by `measure_peak`.

    Two windows of two micro-batches of the chat model with AdamW, bare and watched in turns, 25 pairs. Watching costs
    about the same for each operation, so it weighs less the larger the micro-batch is.
    """
    rows = []
    for size in (4,) if quick else (4, 8):
        seconds = in_turns(_contenders(size), 1 if quick else 25)
        ratios = [watched / bare for bare, watched in zip(seconds["bare"], seconds["watched"], strict=True)]
        rows.append(median_row(f"b={size}, the bare run", seconds["bare"], "ms"))
        rows.append(median_row(f"b={size}, watched takes longer by", ratios, "x", at_most=1.5))
    return rows


def _rows(quick: bool, device: str) -> list[Row]:
    from benchmarks.memory_cases import cases, measured, predicted
    from benchmarks.memory_models import SUBJECTS

    chosen = list(cases())
    if quick:
        chosen = [case for case in chosen if case.recipe.precision == "float32"][:: len(chosen) // 6]
    found: list[tuple[str, int, float]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # transformers remarks on its caches
        for case in chosen:
            subject = SUBJECTS[case.model]()
            true = measured(subject, case.recipe, device)
            found.append((case.model, true, 100 * (predicted(subject, case.recipe) / true - 1)))
    errors, peaks = [error for *_, error in found], [true / MEBIBYTE for _, true, _ in found]
    rows = [
        Row(f"{len(found)} runs: mean error", statistics.mean(map(abs, errors)), "%", at_most=0.5),
        Row("largest error", max(map(abs, errors)), "%", at_most=2),
        Row("lowest prediction", min(errors), "%", at_least=-0.5),
        Row("smallest measured peak", min(peaks), "MiB"),
        Row("largest measured peak", max(peaks), "MiB"),
    ]
    for name in dict.fromkeys(model for model, *_ in found):
        rows.append(Row(f"{name}: the farthest", max((e for m, _, e in found if m == name), key=abs), "%"))
    return rows


def _contenders(size: int) -> dict[str, Callable[[], float]]:
    from gradacc_lessons.memory.loop import one_update
    from gradacc_lessons.memory.measure import measure_peak
    from gradacc_lessons.optimizers import make_optimizer
    from gradacc_lessons.recipe import Recipe
    from gradacc_lessons.tasks import chat

    task, recipe = chat(), Recipe(size, 2, optimizer="adamw", learning_rate=1e-3)
    model = task.build_model()
    optimizer, window = make_optimizer(model, recipe), [task.make_batch(size)] * 2

    def run() -> None:
        for _ in range(2):
            one_update(model, optimizer, window, task.loss_fn, recipe)

    def watched() -> None:
        measure_peak(run, model=model, optimizer=optimizer, inputs=window)

    return {"bare": timed(run), "watched": timed(watched)}


def seven_billion(quick: bool) -> None:
    """In a fresh process: print the seconds, the bytes before, the bytes more, and the peak that is predicted."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from benchmarks.growth import Growth
    from gradacc_lessons.memory.predict import predict_peak
    from gradacc_lessons.recipe import Recipe

    config = LlamaConfig(use_cache=False, **({"num_hidden_layers": 2} if quick else {}))
    recipe = Recipe(1, 2, optimizer="adamw", precision="bfloat16")
    length = 256 if quick else 2048

    def batch(size: int) -> dict[str, torch.Tensor]:
        tokens = torch.zeros(size, length, dtype=torch.long)
        return {"input_ids": tokens, "labels": tokens}

    found = []
    with Growth() as growth:
        run = timed(lambda: found.append(predict_peak(
            lambda: LlamaForCausalLM(config), lambda model, batch: model(**batch).loss, batch, recipe
        )))  # fmt: skip
        seconds = run()
    print(json.dumps([seconds, growth.before, growth.most - growth.before, found[0].peak_bytes]))

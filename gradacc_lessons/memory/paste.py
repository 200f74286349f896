"""The lines that carry a plan into a framework, or into a loop of your own."""

from collections.abc import Callable, Sequence
from typing import Any

from gradacc_lessons.recipe import Recipe

_HF_OPTIMIZERS = {"sgd": "sgd", "momentum": "sgd", "adamw": "adamw_torch", "adafactor": "adafactor"}
_LIGHTNING_PRECISIONS = {
    "float32": "32-true", "float64": "64-true", "bfloat16": "bf16-true", "autocast": "bf16-mixed"
}  # fmt: skip


def huggingface(size: int, count: int, recipe: Recipe) -> str:
    """TrainingArguments for transformers' Trainer."""
    arguments: dict[str, Any] = {"per_device_train_batch_size": size, "gradient_accumulation_steps": count}
    notes = []
    if recipe.optimizer in _HF_OPTIMIZERS:
        fused = "_fused" if recipe.optimizer == "adamw" and recipe.optimizer_kernel == "fused" else ""
        arguments["optim"] = _HF_OPTIMIZERS[recipe.optimizer] + fused
    else:
        notes.append("# Adam is not among Trainer's own: Trainer(..., optimizers=(torch.optim.Adam(...), None))")
    if recipe.optimizer == "momentum":
        arguments["optim_args"] = "momentum=0.9"
    arguments["max_grad_norm"] = recipe.max_norm or 0.0
    if recipe.precision == "autocast":
        arguments["bf16"] = True
    arguments["gradient_checkpointing"] = recipe.checkpointing
    arguments["dataloader_drop_last"] = True  # a micro-batch that is too short would count as much as the others
    return "\n".join(
        [
            *_imports("from transformers import TrainingArguments", recipe),
            "",
            *_dtype(recipe),
            *notes,
            _call("args = TrainingArguments", arguments),
        ]
    )


def accelerate(size: int, count: int, recipe: Recipe) -> str:
    """The lines of a loop with Accelerate."""
    mixed = "bf16" if recipe.precision == "autocast" else "no"
    clip = [
        "        if accelerator.sync_gradients:",
        f"            accelerator.clip_grad_norm_(model.parameters(), {recipe.max_norm})",
    ]
    return "\n".join(
        [
            *_imports("from accelerate import Accelerator", recipe),
            _LOADERS,
            "",
            *_dtype(recipe),
            *_checkpointing(recipe),
            _call("accelerator = Accelerator", {"gradient_accumulation_steps": count, "mixed_precision": mixed}),
            *_loader(size, count),
            "model, optimizer, loader = accelerator.prepare(model, optimizer, loader)",
            "for batch in loader:",
            "    with accelerator.accumulate(model):",
            "        accelerator.backward(loss_fn(model, batch))",
            *(clip if recipe.max_norm is not None else []),
            "        optimizer.step()",
            "        optimizer.zero_grad()",
        ]
    )


def lightning(size: int, count: int, recipe: Recipe) -> str:
    """Lightning's Trainer."""
    arguments: dict[str, Any] = {
        "accumulate_grad_batches": count,
        "precision": _LIGHTNING_PRECISIONS[recipe.precision],
        "gradient_clip_val": recipe.max_norm,
    }
    return "\n".join(
        [
            "from lightning.pytorch import Trainer",
            _LOADERS,
            "",
            *_checkpointing(recipe),
            *_loader(size, count),
            _call("trainer = Trainer", arguments),
        ]
    )


def deepspeed(size: int, count: int, recipe: Recipe) -> str:
    """A DeepSpeed configuration, for one device."""
    entries: dict[str, Any] = {
        "train_batch_size": size * count,
        "train_micro_batch_size_per_gpu": size,
        "gradient_accumulation_steps": count,
        "gradient_clipping": recipe.max_norm or 0.0,
    }
    if recipe.precision == "bfloat16":
        entries["bf16"] = {"enabled": True}
    elif recipe.precision == "autocast":
        entries["torch_autocast"] = {"enabled": True, "dtype": "bfloat16"}
    inner = "\n".join(f"    {key!r}: {value!r}," for key, value in entries.items()).replace("'", '"')
    notes = []
    if recipe.precision == "bfloat16":
        notes = ["# DeepSpeed keeps float32 copies of bfloat16 weights: more memory than was planned."]
    elif recipe.precision == "float64":
        notes = [
            "# The configuration has no entry for float64: convert the model before deepspeed.initialize.",
            *_imports("", recipe),
            *_dtype(recipe),
        ]
    return "\n".join([*_checkpointing(recipe), *notes, f"config = {{\n{inner}\n}}"])


def loop(sizes: Sequence[int], recipe: Recipe) -> str:
    """A loop of one's own, the only one that can take micro-batches of two sizes.

    It needs what a plan was made from: `model`, `loss_fn(model, batch)` for the mean loss, `data` whose batches are
    tuples or dicts of tensors, and `optimizer`.
    """
    target = sum(sizes)
    counts = " + ".join(f"[{size}] * {sizes.count(size)}" for size in dict.fromkeys(sizes))
    loss = ["        loss = loss_fn(model, part)"]
    if recipe.precision == "autocast":
        loss = [
            "        with torch.autocast(next(model.parameters()).device.type, torch.bfloat16):",
            "            loss = loss_fn(model, part)",
        ]
    clip = [f"    torch.nn.utils.clip_grad_norm_(model.parameters(), {recipe.max_norm})"]
    return "\n".join(
        [
            "import torch",
            "from torch.utils.data import DataLoader",
            "",
            *_dtype(recipe),
            *_checkpointing(recipe),
            f"sizes = {counts}",
            f"for batch in DataLoader(data, batch_size={target}, shuffle=True, drop_last=True):",
            "    start = 0",
            "    for size in sizes:",
            "        rows = slice(start, start + size)",
            '        if hasattr(batch, "items"):  # a dict, as language models take it',
            "            part = {name: tensor[rows] for name, tensor in batch.items()}",
            "        else:",
            "            part = tuple(tensor[rows] for tensor in batch)",
            *loss,
            "        # Weighed by its share of the examples. If loss_fn is a mean over tokens: by its share of those.",
            f"        (size / {target} * loss).backward()",
            "        start += size",
            *(clip if recipe.max_norm is not None else []),
            "    optimizer.step()",
            f"    optimizer.zero_grad({'' if recipe.set_to_none else 'set_to_none=False'})",
        ]
    )


FRAMEWORKS: dict[str, Callable[[int, int, Recipe], str]] = {
    "huggingface": huggingface,
    "accelerate": accelerate,
    "lightning": lightning,
    "deepspeed": deepspeed,
}
TITLES = {
    "loop": "A loop of your own",
    "huggingface": "HF Trainer",
    "accelerate": "Accelerate",
    "lightning": "Lightning",
    "deepspeed": "DeepSpeed",
}


_LOADERS = "from torch.utils.data import DataLoader, RandomSampler"


def _loader(size: int, count: int) -> list[str]:
    """Shuffled data in whole windows: these frameworks divide a short last window by N too, and then update."""
    target = size * count
    return [
        f"# Only whole windows of {target}: a shorter last one would be divided by {count} as well, and be too small.",
        f"sampler = RandomSampler(data, num_samples=len(data) // {target} * {target})",
        f"loader = DataLoader(data, batch_size={size}, sampler=sampler)",
    ]


def _imports(line: str, recipe: Recipe) -> list[str]:
    return [*(["import torch"] if _dtype(recipe) else []), *([line] if line else [])]


def _call(function: str, arguments: dict[str, Any]) -> str:
    inner = "\n".join(f"    {name}={value!r},".replace("'", '"') for name, value in arguments.items())
    return f"{function}(\n{inner}\n)"


def _dtype(recipe: Recipe) -> list[str]:
    if recipe.precision not in ("bfloat16", "float64"):
        return []
    return [
        f"model = model.to(torch.{recipe.precision})  # or load it so: dtype=torch.{recipe.precision}",
        f"# The floating-point numbers of the batches are {recipe.precision} too.",
    ]


def _checkpointing(recipe: Recipe) -> list[str]:
    if not recipe.checkpointing:
        return []
    return ["model.gradient_checkpointing_enable()  # or torch.utils.checkpoint around each block"]

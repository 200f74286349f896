"""A language model from a transformers configuration file, as the parts that a plan needs."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gradacc_lessons.memory.loop import LossFunction
from gradacc_lessons.memory.parts import part
from gradacc_lessons.memory.sizes import shown

Parts = tuple[Callable[[], nn.Module], LossFunction, Callable[[int], Any]]
"""build_model, loss_fn, make_batch."""
_SIZES = (
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
)  # fmt: skip
_LARGEST_SIZE = 2**31 - 1
NEEDS = "a model's configuration file is read with transformers: pip install 'gradacc-lessons[models]'"


def parts_of_config(file: Path, sequence: int) -> Parts:
    """The causal or masked language model that `file` describes, on sequences of `sequence` tokens, all the longest.

    Nothing is downloaded, and no code from beside the file is run. ValueError, in one sentence, if the file
    describes no such model, or one with fewer positions; ImportError names what to install.
    """
    try:
        from transformers import AutoModelForCausalLM, AutoModelForMaskedLM
    except ImportError:
        raise ImportError(NEEDS) from None
    if sequence < 1:
        raise ValueError(f"a sequence needs at least 1 token, not {sequence}")
    config = _config(file)
    _check_sizes(config, file)
    family = {"causal": AutoModelForCausalLM, "masked": AutoModelForMaskedLM}[_kind(config, file)]
    _check_positions(config, sequence)

    vocabulary = _text(config).vocab_size

    def build_model() -> nn.Module:
        own = deepcopy(config)
        # The recipe's precision and not the file's: the default dtype is the recipe's while a model is built.
        setattr(own, "dtype" if hasattr(own, "dtype") else "torch_dtype", torch.get_default_dtype())
        own.use_cache = False  # as in training
        with part(f"building the model of {file}"):
            model: nn.Module = family.from_config(own)
        _check_padding(model, sequence)
        return model

    def make_batch(size: int) -> dict[str, Tensor]:
        tokens = torch.randint(vocabulary, (size, sequence), generator=torch.Generator().manual_seed(0))
        return {"input_ids": tokens, "labels": tokens.clone()}

    def loss_fn(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        with part(f"running the model of {file}"):
            loss: Tensor = model(**batch).loss
        return loss

    return build_model, loss_fn, make_batch


def _config(file: Path) -> Any:
    from transformers import AutoConfig

    file = file / "config.json" if file.is_dir() else file
    if not file.is_file():
        raise ValueError(f"there is no file {file}")
    try:
        return AutoConfig.from_pretrained(str(file), local_files_only=True, trust_remote_code=False)
    except Exception as error:  # any kind, as files go wrong in any way: KeyError, ZeroDivisionError, its own
        raise ValueError(f"{file} is no model configuration that transformers knows: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """The first line of what an error says, with those that it announces."""
    said = ""
    for line in str(error).strip().splitlines() or [type(error).__name__]:
        said = f"{said} {line.strip()}".strip()
        if not said.endswith(":"):
            break
    return said if isinstance(error, ValueError | OSError) or ":" in said else f"{type(error).__name__}: {said}"


def _check_sizes(config: Any, file: Path) -> None:
    """transformers builds nothing at all for some numbers, and fails somewhere for others."""
    if getattr(config, "quantization_config", None) is not None:
        raise ValueError(
            f"{file} describes a quantized model, whose weights are not trained: take the configuration of the model "
            "that it was made from"
        )
    text = _text(config)
    for name in _SIZES:
        size = getattr(text, name, None)
        if isinstance(size, int) and not 1 <= size <= _LARGEST_SIZE:
            raise ValueError(f"{file} says {name}: {shown(size)}, which no language model has")
    heads, shared = (getattr(text, f"num_{kind}_heads", None) for kind in ("attention", "key_value"))
    if isinstance(heads, int) and isinstance(shared, int) and heads % shared:
        raise ValueError(f"{file} says {heads} attention heads and {shared} key-value heads, which do not divide them")


def _kind(config: Any, file: Path) -> str:
    """Which language model it is; where the file does not say, what its type can be."""
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    kinds = {"causal": MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, "masked": MODEL_FOR_MASKED_LM_MAPPING_NAMES}
    named = [config.architectures] if isinstance(config.architectures, str) else config.architectures or []
    for kind, names in kinds.items():
        known = names.get(config.model_type, ())
        classes = (known,) if isinstance(known, str) else known
        if classes and (not named or any(name in classes for name in named)):
            return kind
    what = named[0] if named else config.model_type
    raise ValueError(
        f"{file} describes {what}, which is neither a causal nor a masked language model: "
        f"plan it with FILE:FUNCTION, where FUNCTION() returns (build_model, loss_fn, make_batch)"
    )


def _text(config: Any) -> Any:
    """The part of the configuration that is about text: models for images too keep it in one of their own."""
    return config.get_text_config()


def _check_positions(config: Any, sequence: int) -> None:
    most = getattr(_text(config), "max_position_embeddings", None)
    if isinstance(most, int) and sequence > most:
        raise ValueError(f"this model has {most:,} positions, fewer than a sequence of {sequence:,} tokens")


def _check_padding(model: nn.Module, sequence: int) -> None:
    """Some models (RoBERTa and its kin) count positions from behind that of padding: that many fewer can be used."""
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding) and module.padding_idx is not None:
            most = module.num_embeddings - module.padding_idx - 1
            if sequence > most:
                raise ValueError(
                    f"this model has {module.num_embeddings:,} positions, of which it uses {most:,} for tokens, "
                    f"fewer than a sequence of {sequence:,}"
                )

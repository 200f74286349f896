"""Language models from configuration files, and files that are none."""

import json
import sys

import pytest
import torch
from memory.small_models import WORDS, config_file

from gradacc_lessons.memory.config import NEEDS, parts_of_config
from gradacc_lessons.memory.forecast import Forecast
from gradacc_lessons.memory.trial import Trial
from gradacc_lessons.recipe import Recipe

pytest.importorskip("transformers")


@pytest.mark.parametrize("name", ["llama", "bert"])
def test_the_parts_are_a_model_its_loss_and_its_longest_batch(name, tmp_path):
    build_model, loss_fn, make_batch = parts_of_config(config_file(tmp_path, name), 16)
    model, batch = build_model(), make_batch(3)
    assert batch["input_ids"].shape == batch["labels"].shape == (3, 16) and int(batch["input_ids"].max()) < WORDS
    assert batch["input_ids"].data_ptr() != batch["labels"].data_ptr()  # as when trained
    loss = loss_fn(model, batch)
    assert loss.dim() == 0 and abs(float(loss) - torch.tensor(WORDS).log()) < 1
    assert next(model.parameters()).dtype == torch.float32


def test_the_recipes_precision_counts_and_not_the_files(tmp_path):
    file = config_file(tmp_path, "llama")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"dtype": "bfloat16", "torch_dtype": "bfloat16"}))
    parts = parts_of_config(file, 16)
    assert next(parts[0]().parameters()).dtype == torch.float32
    half, whole = (Forecast(*parts, Recipe(precision=p)).profile(4, 2) for p in ("bfloat16", "float32"))
    assert half.by_category["parameters"] / whole.by_category["parameters"] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("name", ["llama", "bert"])
def test_its_prediction_is_what_a_real_window_takes(name, tmp_path):
    forecast = Forecast(*parts_of_config(config_file(tmp_path, name), 16), Recipe(optimizer="adamw"))
    assert forecast.peak(8, 2) == pytest.approx(Trial(forecast).peak((4, 4)).peak_bytes, rel=0.002)


@pytest.mark.parametrize("precision", ["float32", "autocast"])
def test_a_mixture_of_experts_is_what_a_real_window_takes(precision, tmp_path):
    """Which tokens go to which expert decides no size: its kernel takes all experts at once."""
    file = config_file(tmp_path, "llama")
    mixture = {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "num_local_experts": 4}
    file.write_text(json.dumps(json.loads(file.read_text()) | mixture | {"num_key_value_heads": 2}))
    forecast = Forecast(*parts_of_config(file, 32), Recipe(precision=precision))
    assert forecast.peak(32, 2) == pytest.approx(Trial(forecast).peak((16, 16)).peak_bytes, rel=0.002)


def nested(tmp_path):
    """A model for images and text, whose sizes are told in a part for text."""
    text = {"model_type": "gemma3_text", "vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 64}
    text |= {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}
    text |= {"max_position_embeddings": 64}
    seen = {"model_type": "siglip_vision_model", "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    seen |= {"num_attention_heads": 2, "image_size": 28, "patch_size": 14}
    file = tmp_path / "config.json"
    architectures = ["Gemma3ForConditionalGeneration"]
    content = {"model_type": "gemma3", "architectures": architectures, "text_config": text, "vision_config": seen}
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def test_a_model_for_images_too_is_planned_on_text(tmp_path):
    build_model, loss_fn, make_batch = parts_of_config(nested(tmp_path), 16)
    batch = make_batch(2)
    assert int(batch["input_ids"].max()) < WORDS
    assert abs(float(loss_fn(build_model(), batch).detach()) - torch.tensor(WORDS).log()) < 1
    forecast = Forecast(build_model, loss_fn, make_batch, Recipe())
    assert forecast.peak(4, 2) == pytest.approx(Trial(forecast).peak((2, 2)).peak_bytes, rel=0.005)
    with pytest.raises(ValueError, match="this model has 64 positions, fewer than a sequence of 65 tokens"):
        parts_of_config(nested(tmp_path), 65)


def test_positions_behind_that_of_padding_are_counted(tmp_path):
    """RoBERTa's 514 positions are for 512 tokens."""
    file = config_file(tmp_path, "bert")
    roberta = {"model_type": "roberta", "architectures": ["RobertaForMaskedLM"], "max_position_embeddings": 18}
    file.write_text(json.dumps(json.loads(file.read_text()) | roberta), encoding="utf-8")
    assert Forecast(*parts_of_config(file, 16), Recipe()).peak(4, 2) > 0
    with pytest.raises(ValueError, match="18 positions, of which it uses 16 for tokens, fewer than a sequence of 17"):
        Forecast(*parts_of_config(file, 17), Recipe()).peak(4, 2)


def test_without_architectures_the_type_decides(tmp_path):
    file = config_file(tmp_path, "llama")
    content = json.loads(file.read_text())
    del content["architectures"]
    file.write_text(json.dumps(content))
    assert type(parts_of_config(file, 8)[0]()).__name__ == "LlamaForCausalLM"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is no model configuration that transformers knows"),
        ("[1]", "is no model configuration that transformers knows"),
        ('{"model_type": "nope"}', "is no model configuration that transformers knows: .*nope"),
        ('{"model_type": "t5", "architectures": ["T5Model"]}', "describes T5Model, which is neither a causal nor"),
        ('{"model_type": "bert", "architectures": ["BertForSequenceClassification"]}', "neither a causal nor a masked"),
    ],
)
def test_what_describes_no_language_model_is_one_sentence(content, words, tmp_path):
    file = tmp_path / "config.json"
    file.write_text(content)
    for path in (file, tmp_path):
        with pytest.raises(ValueError, match=words) as refused:
            parts_of_config(path, 16)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"num_hidden_layers": 0}, "says num_hidden_layers: 0, which no language model has"),
        ({"num_hidden_layers": -1}, "says num_hidden_layers: -1, which no language model has"),
        ({"num_attention_heads": -4}, "says num_attention_heads: -4, which no language model has"),
        ({"num_attention_heads": 0}, "is no model configuration .* division or modulo by zero"),
        ({"num_attention_heads": 3}, "is no model configuration .* is not a multiple of the number of attention heads"),
        ({"num_key_value_heads": 3}, "says 4 attention heads and 3 key-value heads, which do not divide them"),
        ({"num_key_value_heads": 0}, "says num_key_value_heads: 0, which no language model has"),
        ({"hidden_size": "128"}, "is no model configuration .* 'hidden_size' expected int, got str"),
        ({"hidden_size": 128.5}, "is no model configuration .* 'hidden_size' expected int, got float"),
        ({"vocab_size": None}, "is no model configuration .* 'vocab_size' expected int, got NoneType"),
        ({"vocab_size": 0}, "says vocab_size: 0, which no language model has"),
        ({"vocab_size": 10**30}, r"says vocab_size: 10+, which no language model has"),
        ({"intermediate_size": -3}, "says intermediate_size: -3, which no language model has"),
        ({"hidden_act": "nope"}, "building the model of .* failed with KeyError: 'nope', at line"),
        ({"dtype": "nope"}, "is no model configuration .* has no attribute 'nope'"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "describes a quantized model, whose weights"),
        ({"architectures": [3]}, "describes 3, which is neither a causal nor a masked"),
        (
            {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "num_local_experts": 1}
            | {"num_key_value_heads": 2},
            "running the model of .* failed with RuntimeError: .*, at line",
        ),
    ],
)
def test_numbers_that_no_model_has_are_one_sentence(change, words, tmp_path):
    file = config_file(tmp_path, "llama")
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(ValueError, match=words) as refused:
        Forecast(*parts_of_config(file, 16), Recipe()).peak(4, 2)
    assert "\n" not in str(refused.value) and str(file) in str(refused.value)


def test_the_name_of_one_architecture_is_no_list_of_letters(tmp_path):
    file = config_file(tmp_path, "llama")
    file.write_text(json.dumps(json.loads(file.read_text()) | {"architectures": "LlamaForCausalLM"}))
    assert Forecast(*parts_of_config(file, 16), Recipe()).peak(4, 2) > 0


def test_a_missing_file_and_too_long_a_sequence_are_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="there is no file"):
        parts_of_config(tmp_path / "no.json", 16)
    with pytest.raises(ValueError, match="this model has 512 positions, fewer than a sequence of 513 tokens"):
        parts_of_config(config_file(tmp_path, "bert"), 513)
    with pytest.raises(ValueError, match="a sequence needs at least 1 token"):
        parts_of_config(config_file(tmp_path, "bert"), 0)


def test_without_transformers_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError) as refused:
        parts_of_config(tmp_path / "config.json", 16)
    assert str(refused.value) == NEEDS and "pip install 'gradacc-lessons[models]'" in NEEDS

"""What an examination says, in both languages, and what the command makes of it."""

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result
from detective.examination import pairs_losses, pairs_models, pairs_norms, pairs_random, pairs_state
from detective.examination.pairs import Parts, batch, cross_entropy, mlp
from torch import nn

from gradacc_lessons import Examination, examine
from gradacc_lessons.cli import main
from gradacc_lessons.detective.examination.findings import CAUSES
from gradacc_lessons.detective.examination.sentences import MEANINGS, REMEDIES
from gradacc_lessons.detective.examination.weights import as_ratio


def found(parts: Parts) -> Examination:
    return examine(parts.model, parts.loss_fn, parts.batch, parts.micro_batch_size, **parts.options)


SAID = {
    pairs_norms.cnn_without_norm: ("if each loss is divided by N = 4.", "als je elke loss deelt door N = 4."),
    pairs_losses.sum_cross_entropy: ("Do not divide by N.", "Deel niet door N."),
    pairs_losses.ragged_tokens_that_are_counted: ("if each is weighted by its count.", "weegt met zijn aantal."),
    pairs_norms.home_made_batch_norm: ("in 1 (Centred) what comes out", "in 1 (Centred) hangt"),
    pairs_norms.a_mean_of_the_batch_at_the_end: ("the forward of the model itself (Last)", "van het model zelf (Last)"),
    pairs_norms.autograd_function_that_mixes_in_backward: ("backward of 1 (Applied)", "backward van 1 (Applied)"),
    pairs_norms.many_batch_norms: ("2.1 (BatchNorm1d) and 3 more", "2.1 (BatchNorm1d) en nog 3"),
    pairs_losses.ragged_tokens: (
        "weights 1 : 3 : 10 : 50. That is count=lambda batch: (batch[1] >= 0).sum()", "gewichten 1 : 3 : 10 : 50.",
    ),
    pairs_losses.mean_with_a_smaller_tail: (
        "weights 2 : 2 : 1. That is count=lambda batch: len(batch[0]).", "Dat is count=lambda batch: len(batch[0]).",
    ),
    pairs_losses.a_count_that_does_not_belong: ("weights 1 : 1 : 1 : 1. The counts that were given are", "opgegeven"),
    pairs_state.stateful_recurrent_network: ("the gradient of the next micro-batch depends on it", "hangt daarvan af"),
    pairs_state.stateful_recurrent_network_with_a_smaller_tail: ("RuntimeError: Expected hidden size", "Meegenomen"),
    pairs_state.a_moving_average_in_a_float: ("every forward changes 1.average.", "verandert 1.average."),
    pairs_random.noise_of_numpy: ("could not be given to the micro-batches again", "blijft onzichtbaar"),
    pairs_models.bfloat16: ("Low precision: in float64 it adds up", "Lage precisie"),
    pairs_models.mixtral: ("the model's own precision", "in de precisie van het model zelf"),
}  # fmt: skip


@pytest.mark.few(8)
@pytest.mark.parametrize("build", SAID, ids=lambda build: build.__name__)
def test_the_words_say_what_was_seen(build) -> None:
    torch.manual_seed(0)
    examination = found(build())
    english, dutch = SAID[build]
    assert english in examination.to("en") and dutch in examination.to("nl")
    for remedy in examination.remedies:
        assert remedy.en in examination.message and remedy.nl in examination.to("nl")


def test_every_cause_has_its_words_in_both_languages() -> None:
    for cause in CAUSES:
        for text in (MEANINGS[cause], REMEDIES[cause]):
            assert text.en != text.nl and text.en.endswith(".") and text.nl.endswith(".")


def test_random_numbers_from_nowhere_and_from_a_seed_within_are_told_apart() -> None:
    source = iter(torch.rand(1000).tolist())  # nothing puts an iterator back

    def unrepeated(model: nn.Module, data: tuple[torch.Tensor, ...]) -> torch.Tensor:
        return cross_entropy(model, data) * (1 + next(source))

    def seeded(model: nn.Module, data: tuple[torch.Tensor, ...]) -> torch.Tensor:
        torch.manual_seed(3)
        return cross_entropy(model, data)

    said = [examine(mlp(), unrepeated, batch(), 2), examine(mlp(nn.Dropout(0.4)), seeded, batch(), 2)]
    assert [one.causes for one in said] == [("randomness",)] * 2
    assert "gives another gradient each time" in said[0].message
    assert "sets a seed in every forward" in said[1].message


def test_the_report_has_the_table_under_the_words_and_escapes_names() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.add_module("<b>", nn.BatchNorm1d(6))
            self.layer = nn.Linear(6, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(getattr(self, "<b>")(x))

    examination = examine(Odd(), cross_entropy, batch(), 2, language="nl")
    assert str(examination).startswith("Het telt niet op") and "<b>.weight" in str(examination)
    html = examination._repr_html_()
    assert "&lt;b&gt;" in html and "<b>" not in html and html.startswith('<div lang="nl">')


def test_what_is_being_done_is_told() -> None:
    heard: list[str] = []
    examine(mlp(), cross_entropy, batch(), 2, tell=heard.append)
    assert heard and all(heard)


@pytest.mark.parametrize(
    ("weights", "ratio"),
    [
        ((0.25, 0.25), (1, 1)),
        ((1 / 64, 3 / 64, 10 / 64, 50 / 64), (1, 3, 10, 50)),
        ((0.3, 0.2), (3, 2)),
        ((0.0, 0.5), (0, 1)),
        ((2**0.5, 1.0), None),
        ((0.0, 0.0), None),
        ((-1.0, 2.0), None),
    ],
)
def test_weights_are_told_as_small_whole_numbers_where_they_are_such(weights, ratio) -> None:
    assert as_ratio(weights) == ratio


FILE = """
import torch
from torch import nn

print("at import")

def parts(norm=nn.{norm}):
    def loss_fn(model, batch):
        print("at work")
        return nn.functional.cross_entropy(model(batch["x"]), batch["y"])
    batch = {{"x": torch.randn(8, 4), "y": torch.randint(0, 3, (8,))}}
    return nn.Sequential(nn.Linear(4, 8), norm, nn.Linear(8, 3)), loss_fn, batch{count}

def nothing():
    return 3

def fails():
    raise KeyError("gone")
"""


def asked(folder: Path, *options: str, norm: str = "LayerNorm(8)", count: str = "", function: str = "parts") -> Result:
    file = folder / "mine.py"
    file.write_text(FILE.format(norm=norm, count=count), encoding="utf-8")
    return CliRunner().invoke(main, ["examine", f"{file}:{function}", *options], catch_exceptions=False)


def test_the_command_says_that_it_adds_up(tmp_path) -> None:
    result = asked(tmp_path, "--micro-batch-size", "2")
    assert result.exit_code == 0 and result.stdout.startswith("It adds up: 4 micro-batches")


def test_the_command_says_why_not_and_in_dutch(tmp_path) -> None:
    result = asked(tmp_path, "--micro-batch-size", "2", "--language", "nl", norm="BatchNorm1d(8)")
    assert result.exit_code == 1 and "in 1 (BatchNorm1d)" in result.stdout and "Het telt niet op" in result.stdout


def test_the_command_gives_json_and_nothing_else(tmp_path) -> None:
    result = asked(tmp_path, "--micro-batch-size", "2", "--json", norm="BatchNorm1d(8)")
    said = json.loads(result.stdout)
    assert said["causes"] == ["batch_statistics", "module_state"] and not said["additive"]
    assert {row["parameter"] for row in said["table"]} >= {"0.weight", "2.bias"}
    assert "at import" in result.stderr and "at work" in result.stderr


def test_the_command_takes_a_count(tmp_path) -> None:
    assert asked(tmp_path, "--micro-batch-size", "3").exit_code == 1
    assert asked(tmp_path, "--micro-batch-size", "3", count=", lambda batch: len(batch['x'])").exit_code == 0


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        ("nothing", ("--micro-batch-size", "2"), "nothing() in "),
        ("fails", ("--micro-batch-size", "2"), "failed with KeyError: 'gone', at line"),
        ("absent", ("--micro-batch-size", "2"), "has no function 'absent'"),
        ("parts", ("--micro-batch-size", "8"), "does not cut a batch of 8"),
        ("parts", (), "Missing option '--micro-batch-size'"),
    ],
)
def test_what_the_command_cannot_examine_is_a_sentence(tmp_path, function, options, words) -> None:
    result = asked(tmp_path, *options, function=function)
    assert result.exit_code == 2 and words in result.stderr and "Traceback" not in result.output

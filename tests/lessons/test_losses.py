"""Lesson 06's chooser: every loss and model gets the verdict that it deserves, and the picture says the same."""

import pandas as pd
import pytest
import torch
from matplotlib.colors import to_hex

from gradacc_lessons.lessons import losses
from gradacc_lessons.lessons.loss_cases import CASES, Codebook, hard_triplet, setting, variance_and_covariance
from gradacc_lessons.lessons.losses import TOLERANCE, VerdictFigure, explore_losses, verdict, verdict_table
from gradacc_lessons.lessons.training import collect
from gradacc_lessons.palette import RIGHT, WRONG

PATIENCE = 60.0  # seconds; only a hang comes near it
VERDICTS: dict[str, tuple[str, ...]] = {
    "cross_entropy": (),
    "cross_entropy_sum": (),
    "class_weighted": ("unequal_items",),
    "info_nce": ("loss_not_additive",),
    "hard_triplet": ("loss_not_additive",),
    "vicreg": ("loss_not_additive",),
    "batch_dice": ("loss_not_additive",),
    "sample_dice": (),
    "rmse": ("loss_not_additive",),
    "dropout": ("randomness",),
    "batch_norm": ("batch_statistics", "module_state"),
    "layer_norm": (),
    "codebook": ("module_state",),
}


def test_every_case_has_its_verdict_here() -> None:
    assert set(VERDICTS) == set(CASES)
    assert len({case.label for case in CASES.values()}) == len(CASES)


@pytest.mark.few(14)
@pytest.mark.parametrize(("b", "n"), [(8, 4), (4, 3), (16, 2)])
@pytest.mark.parametrize("case", CASES)
def test_each_gets_the_verdict_that_it_deserves(case: str, b: int, n: int) -> None:
    (row,) = verdict(case, b, n)
    assert row["causes"] == VERDICTS[case]
    assert row["additive"] == (not VERDICTS[case])
    names = [name for name, _ in setting(case, b * n)[0].named_parameters()]
    assert list(row["parameters"]) == names
    assert (max(row["relative_error"]) <= TOLERANCE) == row["additive"]


@pytest.mark.parametrize("case", CASES)
def test_a_setting_is_new_and_the_same_each_time(case: str) -> None:
    (one, loss_fn, batch), (other, _, again) = setting(case, 8), setting(case, 8)
    assert all(torch.equal(a, b) and a is not b for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b in zip(batch, again, strict=True)) and {len(part) for part in batch} == {8}
    assert loss_fn(one, batch).dtype is torch.float64


def test_what_cannot_be_examined_is_a_sentence_in_the_picture() -> None:
    for case, words in (
        ("batch_norm", "Expected more than 1 value per channel"),
        ("vicreg", "the variance of a single example is undefined, so choose a larger b."),
    ):
        data = collect(verdict(case, 1, 4))
        figure = VerdictFigure()
        sentence = figure.draw(data)
        assert "It cannot be examined: " in sentence and words in sentence and sentence.count("..") == 0
        assert data.iloc[0]["additive"] is None and not len(verdict_table(data))
        assert not any(bar.get_width() for bar in figure._ax.patches)


def test_the_hardest_negative_is_looked_for_in_the_batch() -> None:
    vectors = torch.eye(3, dtype=torch.float64)[[0, 0, 1, 1]] + torch.tensor([0.0, 0.1, 0.0, 0.2]).view(4, 1)
    labels = torch.tensor([0, 0, 1, 1])
    similar = torch.nn.functional.cosine_similarity(vectors[:, None], vectors[None], dim=2)
    wanted = [
        max(0.0, max(float(similar[i, j]) for j in range(4) if labels[j] != labels[i])
            - min(float(similar[i, j]) for j in range(4) if labels[j] == labels[i]) + 0.5)
        for i in range(4)
    ]  # fmt: skip
    model = torch.nn.Identity()
    assert float(hard_triplet(model, (vectors, labels))) == pytest.approx(sum(wanted) / 4)
    alone = hard_triplet(torch.nn.Linear(3, 2).double(), (vectors[:1], labels[:1]))
    assert float(alone.detach()) == 0.0 and alone.requires_grad  # no negative, nothing to learn, and no nan


def test_features_that_do_not_vary_cost() -> None:
    spread = torch.randn(64, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2
    model = torch.nn.Identity()
    flat = float(variance_and_covariance(model, (spread * 0, spread * 0)))
    copies = spread[:, :1].expand(64, 3)
    assert flat > 1.9
    assert float(variance_and_covariance(model, (spread, spread))) < 1.0
    assert float(variance_and_covariance(model, (copies, copies))) > 5.0


def test_codes_move_at_every_forward_in_training_only() -> None:
    torch.manual_seed(0)
    book, vectors = Codebook(), torch.randn(8, 16)
    before = book.codes.clone()
    book.eval()(vectors)
    assert torch.equal(book.codes, before)
    given = book.train()(vectors)
    assert not torch.equal(book.codes, before)
    assert torch.allclose(given[0], before[torch.cdist(vectors, before).argmin(dim=1)[0]], atol=1e-6)


# The picture and the explorer


def bars(figure: VerdictFigure) -> list[tuple[float, str]]:
    """(end, colour) of each bar from the top."""
    found = sorted(figure._ax.patches, key=lambda bar: bar.get_y())
    colours = {RIGHT: "right", WRONG: "wrong"}
    return [(bar.get_x() + bar.get_width(), colours[to_hex(bar.get_facecolor()).upper()]) for bar in found]


@pytest.mark.parametrize("case", ["batch_norm", "layer_norm", "info_nce"])
def test_a_bar_ends_at_its_error_and_has_the_colour_of_its_side(case: str) -> None:
    data = collect(verdict(case, 8, 4))
    figure = VerdictFigure()
    figure.draw(data)
    errors = data.iloc[0]["relative_error"]
    drawn = bars(figure)
    assert [end for end, _ in drawn] == pytest.approx([max(error, 1e-18) for error in errors])
    assert [colour for _, colour in drawn] == ["wrong" if error > TOLERANCE else "right" for error in errors]
    assert [label.get_text() for label in figure._ax.get_yticklabels()] == list(data.iloc[0]["parameters"])


@pytest.mark.parametrize("case", ["batch_norm", "layer_norm", "info_nce"])
def test_each_bar_ends_in_its_number(case: str) -> None:
    data, figure = collect(verdict(case, 8, 4)), VerdictFigure()
    figure.draw(collect(verdict("cross_entropy", 8, 4)))
    figure.update(data)
    assert [words.get_text() for words in figure._ax.texts] == list(verdict_table(data)["relative error"])


def test_another_case_takes_the_place_of_the_bars() -> None:
    figure = VerdictFigure()
    figure.draw(collect(verdict("batch_norm", 8, 4)))
    sentence = figure.update(collect(verdict("cross_entropy", 8, 4)))
    assert len(bars(figure)) == 4 and {colour for _, colour in bars(figure)} == {"right"}
    assert sentence.startswith("cross-entropy, mean, b = 8, N = 4. It adds up") and figure.png()


def test_the_sentence_is_what_examine_says_with_what_to_do() -> None:
    data = collect(verdict("info_nce", 8, 4))
    sentence = VerdictFigure().draw(data)
    assert "The loss is not a sum over examples" in sentence and "GradCache" in sentence


def test_the_table_names_rounding_and_gives_no_digits_of_it() -> None:
    table = verdict_table(collect(verdict("layer_norm", 8, 4)))
    assert set(table["relative error"]) == {"rounding only"} and set(table["cosine"]) == {"1.00"}
    table = verdict_table(collect(verdict("info_nce", 8, 4)))
    assert table["relative error"].str.fullmatch(r"\d+(\.\d+)? %").all()


def test_each_control_moves_the_verdict() -> None:
    explorer = explore_losses("cross_entropy")
    seen = set()
    for values in ({"case": "sample_dice"}, {"micro_batch_size": 4}, {"accumulation_steps": 2}):
        explorer.set(**values)
        explorer.wait(PATIENCE)
        seen.add(explorer.sentence)
        assert list(explorer.data.iloc[-1][["case", "b", "n"]]) == list(explorer.values.values())
    assert len(seen) == 3
    for values, sentence in (
        ({"case": "magic"}, "must be one of"),
        ({"accumulation_steps": 1}, "whole number from 2"),
        ({"micro_batch_size": 32, "accumulation_steps": 16}, "but the data has 261"),
    ):
        with pytest.raises(ValueError, match=sentence):
            explorer.set(**values)


def test_an_error_in_the_run_is_shown_and_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no <verdict>")

    monkeypatch.setattr(losses, "examine", broken)
    explorer = explore_losses()
    explorer.start()
    with pytest.raises(RuntimeError, match="verdict"):
        explorer.wait(PATIENCE)
    assert "no &lt;verdict&gt;" in explorer._message.value


def test_the_static_twin_is_the_same_each_time() -> None:
    twins = [explore_losses().static() for _ in range(2)]
    assert twins[0].sentence == twins[1].sentence
    assert isinstance(twins[0].table, pd.DataFrame) and twins[0].table.equals(twins[1].table)

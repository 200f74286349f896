"""Can this model with this loss be accumulated? Runs it under changed conditions and says why not."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from typing import Any

import pandas as pd
from torch import Tensor, nn

from gradacc_lessons.detective.examination import wording
from gradacc_lessons.detective.examination.batches import examples_in, starts_of
from gradacc_lessons.detective.examination.causes import Count, investigate
from gradacc_lessons.detective.examination.errors import ExamineError as ExamineError
from gradacc_lessons.detective.examination.keep import settings_kept
from gradacc_lessons.errors import words_of
from gradacc_lessons.text import LANGUAGES, Language, Text


@dataclass(frozen=True)
class Examination:
    """Whether micro-batches add up to the whole batch, and why not."""

    additive: bool
    """Whether the gradients agree: no cause touches the gradient."""
    causes: tuple[str, ...]
    """Ids out of batch_statistics, randomness, loss_not_additive, unequal_items, module_state, low_precision,
    unknown; empty when all is right. module_state alone may leave the gradient as it is."""
    table: pd.DataFrame
    """A row per parameter: parameter, relative_error, cosine, ratio (accumulated to whole)."""
    said: Text
    """What was found and what to do, in both languages: a line for the verdict, and one for each cause."""
    remedies: tuple[Text, ...]
    """What to do alone, for each cause."""
    relative_error: float
    """|accumulated - whole| / |whole| of all parameters together."""
    weights: tuple[float, ...]
    """What each micro-batch's loss was multiplied by in `table`: 1/N, its share of the counts, or 1 for a sum."""
    evidence: dict[str, Any] = field(default_factory=dict)
    """What was seen: `modules` that mix examples, with their `kinds`, `state` that moves, `item_weights` that fit and
    what is `counted` by them, why there was no `float64`, where there was none, and what limits the verdict:
    `hooks_after`, `no_effect_in`, `equal_examples`, `unseen`, `left_wide`, `elsewhere`."""
    language: Language = "en"
    """The language of `message`, and of what is shown."""

    @property
    def message(self) -> str:
        """What was found, in the language that was asked for."""
        return self.to(self.language)

    def to(self, language: Language) -> str:
        """The message in another language; ValueError names the languages there are."""
        return self.said.to(language)

    def __str__(self) -> str:
        return f"{self.message}\n\n{self.table.to_string(index=False)}"

    def _repr_html_(self) -> str:
        paragraphs = "".join(f"<p>{escape(part)}</p>" for part in self.message.split("\n"))
        table = self.table.to_html(index=False, border=0, float_format="{:.3g}".format)
        return f'<div lang="{self.language}">{paragraphs}{table}</div>'


def examine(
    model: nn.Module,
    loss_fn: Callable[[Any, Any], Tensor],
    batch: Any,
    micro_batch_size: int,
    *,
    count: Count | None = None,
    language: Language = "en",
    tell: Callable[[str], object] | None = None,
) -> Examination:
    """Compare the gradient of the whole batch with that of its micro-batches, and find out why they differ.

    `loss_fn(model, batch)` gives a scalar tensor; `batch` is a tensor, or a tuple, list or dict of tensors that share
    dimension 0. Micro-batches are added with 1/N each, or with their share of `count(micro_batch)` if that is given.
    The model is run in the mode in which it is, many times; it, the loss, their gradients, buffers and generators are
    put back as they were, also when something fails, as far as they can be reached: what a function imports within
    itself, a weak reference, an iterator, an open file and another thread cannot (the module `examination.reach` says
    what is followed). Usual weights have to fit at one other value of the parameters too. What runs after a gradient
    was added to `.grad` is not examined, and in a batch a list, tuple or array with an entry for each example is cut
    along with the tensors. It takes the memory of the model and of the gradients of all
    micro-batches in float64. `tell` hears what is being done.

    ExamineError (a ValueError), in one sentence, for what cannot be examined.
    """
    if language not in LANGUAGES:
        raise ValueError(f"the language {language!r} is not one of {', '.join(LANGUAGES)}")
    if not isinstance(model, nn.Module):
        raise ExamineError(f"the model must be a torch.nn.Module, not {type(model).__name__}")
    if not callable(loss_fn):
        raise ExamineError(f"loss_fn must be a function loss_fn(model, batch), not {type(loss_fn).__name__}")
    if count is not None and not callable(count):
        raise ExamineError(f"count must be a function count(micro_batch), not {type(count).__name__}")
    pieces = starts_of(examples_in(batch), micro_batch_size)
    with settings_kept(), _in_a_sentence():
        found = investigate(model, loss_fn, batch, pieces, count, tell or (lambda sentence: None))
    return Examination(
        additive=not found.touching,
        causes=wording.causes_of(found),
        table=pd.DataFrame(
            [(row.name, row.relative_error, row.cosine, row.ratio) for row in found.rows],
            columns=["parameter", "relative_error", "cosine", "ratio"],
        ),
        said=wording.message(found, len(pieces), count is not None),
        remedies=wording.remedies(found),
        relative_error=found.relative_error,
        weights=found.weights,
        evidence=found.evidence,
        language=language,
    )


@contextmanager
def _in_a_sentence() -> Iterator[None]:
    """What nobody has thought of is still one sentence; the error behind it stays its cause."""
    try:
        yield
    except ExamineError:
        raise
    except Exception as error:
        raise ExamineError(f"this model and loss cannot be examined: {words_of(error)}") from error

"""The mean of means is not the mean over all tokens."""

import torch

from gradacc_lessons.museum.kinds import ModelExhibit
from gradacc_lessons.tasks import chat
from gradacc_lessons.text import Text


class TRL2175(ModelExhibit):
    """huggingface/trl, issue 2175."""

    project, year = "TRL", 2024
    thread = "https://github.com/huggingface/trl/issues/2175"
    finding, lesson = "unequal_items", "04_uneven_windows"
    title = Text(
        "A token's weight depends on its micro-batch", "Het gewicht van een token hangt af van zijn micro-batch"
    )
    symptom = Text(
        "Accumulation gives worse results than the batch size that it should be equal to. The issue ends with "
        "transformers 34198, part of the repair of October 2024; other projects made the same repair in those weeks.",
        "Accumulatie geeft slechtere resultaten dan de batchgrootte waaraan het gelijk zou moeten zijn. De issue "
        "eindigt met transformers 34198, een deel van de reparatie van oktober 2024; andere projecten deden in die "
        "weken dezelfde.",
    )
    number_name = Text(
        "distance of the micro-batches' gradient from the full batch's, as a share of its length (4 in four)",
        "afstand van de gradient van de micro-batches tot die van de volle batch, als deel van zijn lengte (4 in vier)",
    )
    expected = (0.389, 0.0)
    fix = Text(
        "Weigh each micro-batch by its share of the window's tokens: sums of losses over the tokens of the window.",
        "Weeg elke micro-batch met zijn aandeel in de tokens van het venster: sommen van losses, gedeeld door de "
        "tokens van het venster.",
    )
    explanation = Text(
        "Each micro-batch's loss is a mean over its own tokens, and 1/N gives all micro-batches the same weight. A "
        "token among few others then counts for more than one among many. Where all answers have the same length "
        "nothing is wrong, which is why it was not seen for years.",
        "De loss van elke micro-batch is een gemiddelde over zijn eigen tokens, en 1/N geeft alle micro-batches "
        "hetzelfde gewicht. Een token tussen weinig andere telt dan zwaarder dan een tussen veel. Zijn alle antwoorden "
        "even lang, dan is er niets mis, en daarom bleef het jaren onopgemerkt.",
    )
    micro_batch_size = 1

    @staticmethod
    def bug():
        task = chat(length=64, width=16, layers=1, heads=2, dtype=torch.float64)
        batch = tuple(tensor[:4] for tensor in task.train)
        return task.build_model(0), task.loss_fn, batch  # and 1/N for each micro-batch

    @staticmethod
    def fixed():
        task = chat(length=64, width=16, layers=1, heads=2, dtype=torch.float64)
        batch = tuple(tensor[:4] for tensor in task.train)
        return task.build_model(0), task.loss_fn, batch, task.count  # its share of the tokens for each

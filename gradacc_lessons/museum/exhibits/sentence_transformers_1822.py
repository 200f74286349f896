"""A loss that compares examples sees only its micro-batch."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gradacc_lessons.device import seeded
from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import ModelExhibit
from gradacc_lessons.tasks import digits
from gradacc_lessons.text import Text

PAIRS = 32


def encoder_and_pairs():
    """A linear encoder, and 32 digits as pairs: the left half asks for its right half."""
    images = digits(dtype=torch.float64).train[0][:PAIRS]
    with seeded(0):
        encoder = nn.Sequential(nn.Flatten(), nn.Linear(32, 16)).double()
    return encoder, (images[..., :4], images[..., 4:])


def ranking_loss(left: Tensor, right: Tensor) -> Tensor:
    """Each left half should be nearest to its own right half; all other right halves are its negatives."""
    scores = 20 * F.normalize(left) @ F.normalize(right).T
    return F.cross_entropy(scores, torch.arange(len(left)))


class SentenceTransformers1822(ModelExhibit):
    """huggingface/sentence-transformers, pull request 1822."""

    project, year = "sentence-transformers", 2023
    thread = "https://github.com/huggingface/sentence-transformers/pull/1822"
    finding, lesson = "loss_not_additive", "06_not_a_sum"
    title = Text("Negatives do not add up", "Negatieven tellen niet op")
    symptom = Text(
        "A pull request adds accumulation, so that N/M samples M times do what N samples do. The maintainer declines: "
        "a batch of 512 works well, 512 batches of one do not work at all, as they have zero negatives each.",
        "Een pull request voegt accumulatie toe, zodat M keer N/M voorbeelden doet wat N voorbeelden doen. De "
        "beheerder wijst het af: een batch van 512 werkt goed, 512 batches van één werken helemaal niet, want die "
        "hebben elk nul negatieven.",
    )
    number_name = Text(
        "distance of the micro-batches' gradient from that of all 32 pairs at once, as a share of its length",
        "afstand van de gradient van de micro-batches tot die van alle 32 paren ineens, als deel van zijn lengte",
    )
    expected = (0.309, 0.0)
    fix = Text(
        "GradCache: embed all pairs without a graph, ask the loss of all of them what it wants of each embedding, and "
        "go backward from that, micro-batch by micro-batch. The library's CachedMultipleNegativesRankingLoss does so.",
        "GradCache: bereken alle embeddings zonder graaf, vraag de loss van alle paren wat die van elke embedding wil, "
        "en ga daarmee backward, micro-batch voor micro-batch. CachedMultipleNegativesRankingLoss van de bibliotheek "
        "doet dat.",
    )
    explanation = Text(
        "The loss of a pair depends on who else is in its micro-batch: with 8 pairs it has 7 negatives, with 32 it has "
        "31. Micro-batches solve an easier puzzle, and its gradient is another one.",
        "De loss van een paar hangt af van wie er nog meer in zijn micro-batch zit: met 8 paren heeft het 7 "
        "negatieven, met 32 zijn het er 31. Micro-batches lossen een makkelijker puzzel op, en die heeft een andere "
        "gradient.",
    )

    @staticmethod
    def bug():
        encoder, pairs = encoder_and_pairs()

        def loss_fn(model, batch):
            left, right = batch
            return ranking_loss(model(left), model(right))

        return encoder, loss_fn, pairs

    @staticmethod
    def fixed():
        encoder, pairs = encoder_and_pairs()
        embedded = [encoder(half).detach().requires_grad_() for half in pairs]
        asked = torch.autograd.grad(ranking_loss(*embedded), embedded)  # once, of all pairs

        def loss_fn(model, batch):
            left, right, of_left, of_right = batch
            return PAIRS * (model(left) * of_left + model(right) * of_right).sum(dim=1).mean()

        return encoder, loss_fn, (*pairs, *asked)

    def measure(self, kind: Kind) -> float:
        """Against the ranking loss of all pairs, also after the fix."""
        encoder, pairs = encoder_and_pairs()
        whole = torch.autograd.grad(ranking_loss(*(encoder(half) for half in pairs)), list(encoder.parameters()))
        model, loss_fn, batch = self.code(kind)()
        pieces = list(zip(*(tensor.split(self.micro_batch_size) for tensor in batch), strict=True))
        for piece in pieces:
            (loss_fn(model, piece) / len(pieces)).backward()
        wrong = sum(float((p.grad - right).square().sum()) for p, right in zip(model.parameters(), whole, strict=True))
        return float((wrong / sum(float(right.square().sum()) for right in whole)) ** 0.5)

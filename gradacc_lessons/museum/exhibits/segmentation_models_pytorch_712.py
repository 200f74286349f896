"""Dice over a whole batch is a ratio of sums."""

import torch
from torch import nn

from gradacc_lessons.device import seeded
from gradacc_lessons.museum.kinds import ModelExhibit
from gradacc_lessons.tasks import digits
from gradacc_lessons.text import Text


def net_and_masks():
    """A small convolutional net, and 32 digits with the mask of what is to be found: the ink of threes."""
    images, labels = (tensor[:32] for tensor in digits(dtype=torch.float64).train)
    with seeded(0):
        net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1)).double()
    return net, (images, ((images > 0.5) & (labels == 3)[:, None, None, None]).double())


class SegmentationModels712(ModelExhibit):
    """qubvel-org/segmentation_models.pytorch, issue 712."""

    project, year = "segmentation_models.pytorch", 2023
    thread = "https://github.com/qubvel-org/segmentation_models.pytorch/issues/712"
    finding, lesson = "loss_not_additive", "06_not_a_sum"
    title = Text("Dice of the batch is not the mean of Dice", "Dice van de batch is niet het gemiddelde van Dice")
    symptom = Text(
        "Somebody's gradients jump. The Dice loss turns out to be computed over the whole batch and not per image, "
        "and the two give very different results.",
        "Iemands gradients springen. De Dice-loss blijkt over de hele batch te worden berekend en niet per beeld, en "
        "die twee geven heel verschillende uitkomsten.",
    )
    number_name = Text(
        "distance of the micro-batches' gradient from the full batch's, as a share of its length (32 in four)",
        "afstand van de gradient van de micro-batches tot die van de volle batch, als deel van zijn lengte "
        "(32 in vier)",
    )
    expected = (0.053, 0.0)
    fix = Text(
        "Compute Dice image by image and take the mean. That is another loss, and the thread's author wanted that one.",
        "Bereken Dice per beeld en neem het gemiddelde. Dat is een andere loss, en die wilde de schrijver van de "
        "thread.",
    )
    explanation = Text(
        "Over a batch, Dice divides the sum of all overlaps by the sum of all sizes. A large object counts for more "
        "than a small one, and how much more depends on who else is in the batch. A mean of such ratios over "
        "micro-batches is not the ratio of the large batch. The more alike the images are, the smaller the error.",
        "Over een batch deelt Dice de som van alle overlappingen door de som van alle groottes. Een groot object telt "
        "zwaarder dan een klein, en hoeveel zwaarder hangt af van wie er nog meer in de batch zit. Het gemiddelde van "
        "zulke verhoudingen over micro-batches is niet die van de grote batch. Hoe meer de beelden op elkaar lijken, "
        "hoe kleiner de fout.",
    )

    @staticmethod
    def bug():
        net, batch = net_and_masks()

        def loss_fn(model, batch):
            images, masks = batch
            guess = model(images).sigmoid()
            overlap, size = (guess * masks).sum(), (guess + masks).sum()
            return 1 - 2 * overlap / size

        return net, loss_fn, batch

    @staticmethod
    def fixed():
        net, batch = net_and_masks()

        def loss_fn(model, batch):
            images, masks = batch
            guess = model(images).sigmoid()
            overlap, size = (guess * masks).sum((1, 2, 3)), (guess + masks).sum((1, 2, 3))
            return (1 - 2 * overlap / size).mean()

        return net, loss_fn, batch

"""BatchNorm looks at a micro-batch, whatever N is."""

import torch

from gradacc_lessons.museum.kinds import ModelExhibit
from gradacc_lessons.tasks import digits
from gradacc_lessons.text import Text


class MMCV1869(ModelExhibit):
    """open-mmlab/mmcv, issue 1869."""

    project, year = "MMCV", 2022
    thread = "https://github.com/open-mmlab/mmcv/issues/1869"
    finding, lesson = "batch_statistics", "05_batch_norm"
    also = ("module_state",)
    title = Text("BatchNorm does not see the large batch", "BatchNorm ziet de grote batch niet")
    symptom = Text(
        "Somebody accumulates gradients because a larger batch should help. The accuracy falls by 8 % instead, and a "
        "warning says that BatchNorm layers may cost some performance.",
        "Iemand telt gradients op omdat een grotere batch zou helpen. De nauwkeurigheid zakt juist met 8 %, en een "
        "waarschuwing zegt dat BatchNorm-lagen wat prestatie kunnen kosten.",
    )
    number_name = Text(
        "distance of the micro-batches' gradient from the full batch's, as a share of its length (16 in four)",
        "afstand van de gradient van de micro-batches tot die van de volle batch, als deel van zijn lengte "
        "(16 in vier)",
    )
    expected = (0.161, 0.0)
    fix = Text(
        "Take a norm that looks at one example (the exhibit: GroupNorm). The thread ends without a repair: nothing in "
        "the accumulation can put this right.",
        "Neem een norm die naar één voorbeeld kijkt (hier: GroupNorm). De thread eindigt zonder reparatie: met de "
        "accumulatie zelf is hier niets aan te doen.",
    )
    explanation = Text(
        "Each example is normalised by the mean and variance of its own micro-batch. Other neighbours, other output, "
        "other gradient: 1/N is right, and the sum is still not that of the large batch. The running statistics "
        "also move N times. Whether that costs accuracy depends on the task; the gradient differs in any case.",
        "Elk voorbeeld wordt genormaliseerd met het gemiddelde en de variantie van zijn eigen micro-batch. Andere "
        "buren, andere uitvoer, andere gradient: 1/N klopt, en toch is de som niet die van de grote batch. De running "
        "statistics verschuiven bovendien N keer. Of dat nauwkeurigheid kost, hangt van de taak af; de gradient is "
        "hoe dan ook een andere.",
    )
    micro_batch_size = 4

    @staticmethod
    def bug():
        task = digits(norm="batch", dtype=torch.float64)
        return task.build_model(0), task.loss_fn, tuple(tensor[:16] for tensor in task.train)

    @staticmethod
    def fixed():
        task = digits(norm="group", dtype=torch.float64)
        return task.build_model(0), task.loss_fn, tuple(tensor[:16] for tensor in task.train)

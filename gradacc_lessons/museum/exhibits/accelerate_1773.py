"""The loss is divided by N before a backward that divides it by N."""

from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import TapeExhibit
from gradacc_lessons.museum.measures import first_length
from gradacc_lessons.museum.scene import Scene, digits_scene, returning_its_loss
from gradacc_lessons.text import Text


class Accelerator:
    """Divides each loss by N before its backward, as Accelerate and DeepSpeed do."""

    def __init__(self, accumulation_steps):
        self.accumulation_steps = accumulation_steps

    def backward(self, loss):
        """The backward of the N-th part of `loss`."""
        (loss / self.accumulation_steps).backward()


class Accelerate1773(TapeExhibit):
    """huggingface/accelerate, issue 1773."""

    project, year = "Accelerate", 2023
    thread = "https://github.com/huggingface/accelerate/issues/1773"
    finding, lesson = "double_scale", "02_scale_the_loss"
    title = Text("Divided by N twice", "Twee keer door N gedeeld")
    symptom = Text(
        "No error. A reader of an official example finds the loss divided by N just before accelerator.backward, and "
        "asks whether that is a mistake. It is the second report of it (1767).",
        "Geen fout. Een lezer van een officieel voorbeeld ziet dat de loss vlak voor accelerator.backward door N wordt "
        "gedeeld, en vraagt of dat een vergissing is. Het is de tweede melding ervan (1767).",
    )
    number_name = Text(
        "length of the first gradient applied, as a multiple of the full batch's (N = 4)",
        "lengte van de eerste toegepaste gradient, als veelvoud van die van de volle batch (N = 4)",
    )
    expected = (0.25, 1.0)
    fix = Text(
        "Leave the division to its one owner: accelerator.backward (with DeepSpeed: its engine).",
        "Laat het delen aan de ene eigenaar over: accelerator.backward (met DeepSpeed: de engine).",
    )
    explanation = Text(
        "Training runs, N times too slowly with SGD. Adam hides it, and clipping never bites. The exhibit's small "
        "Accelerator does what the real one does to a loss, and nothing else.",
        "Het trainen loopt, met SGD N keer te langzaam. Adam verbergt het, en clippen grijpt nooit in. De kleine "
        "Accelerator hier doet met een loss wat de echte doet, en verder niets.",
    )

    @staticmethod
    def bug(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        accelerator = Accelerator(accumulation_steps)
        for index, batch in enumerate(micro_batches):
            loss = loss_fn(model, batch) / accumulation_steps
            accelerator.backward(loss)
            if (index + 1) % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()

    @staticmethod
    def fixed(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        accelerator = Accelerator(accumulation_steps)
        for index, batch in enumerate(micro_batches):
            loss = loss_fn(model, batch)
            accelerator.backward(loss)
            if (index + 1) % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()

    def scene(self) -> Scene:
        """The model returns its loss, as those of transformers do."""
        return returning_its_loss(digits_scene())

    def measure(self, kind: Kind) -> float:
        """The first update's gradient against that of the first window in one batch."""
        return first_length(self.scene(), self.code(kind))

"""The short last window is divided by N."""

from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import LoopExhibit
from gradacc_lessons.museum.measures import gradients_applied, whole_gradient
from gradacc_lessons.museum.scene import Scene, digits_scene
from gradacc_lessons.text import Text


class Transformers38837(LoopExhibit):
    """huggingface/transformers, issue 38837."""

    project, year = "transformers", 2025
    thread = "https://github.com/huggingface/transformers/issues/38837"
    finding, lesson, scope = "tail_underscaled", "04_uneven_windows", "tail"
    title = Text("The last update of an epoch is too small", "De laatste update van een epoch is te klein")
    symptom = Text(
        "The log repeats a loss of 0.9984 with a gradient norm of 36.2, and at the end of each epoch it says 0.4992 "
        "and 18.1: half of both.",
        "De log herhaalt een loss van 0,9984 met een gradientnorm van 36,2, en aan het eind van elke epoch staat er "
        "0,4992 en 18,1: van allebei de helft.",
    )
    number_name = Text(
        "length of the last gradient of the epoch, as a multiple of that of its own micro-batches in one batch",
        "lengte van de laatste gradient van de epoch, als veelvoud van die van zijn eigen micro-batches in één batch",
    )
    expected = (0.5, 1.0)
    fix = Text(
        "Divide by the number of micro-batches that the window really has.",
        "Deel door het aantal micro-batches dat het venster echt heeft.",
    )
    explanation = Text(
        "The Trainer does update at the end of an epoch, with what is left: here two micro-batches where N is four. "
        "They were divided by four, so their mean comes out half as long.",
        "De Trainer doet aan het eind van een epoch wel een update, met wat er over is: hier twee micro-batches, en N "
        "is vier. Ze zijn door vier gedeeld, dus hun gemiddelde wordt half zo lang.",
    )

    @staticmethod
    def bug(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        for index, batch in enumerate(micro_batches):
            loss = loss_fn(model, batch) / accumulation_steps
            loss.backward()
            last = index + 1 == len(micro_batches)
            if (index + 1) % accumulation_steps == 0 or last:
                optimizer.step()
                optimizer.zero_grad()

    @staticmethod
    def fixed(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        for index, batch in enumerate(micro_batches):
            first = index - index % accumulation_steps
            loss = loss_fn(model, batch) / min(accumulation_steps, len(micro_batches) - first)
            loss.backward()
            last = index + 1 == len(micro_batches)
            if (index + 1) % accumulation_steps == 0 or last:
                optimizer.step()
                optimizer.zero_grad()

    def scene(self) -> Scene:
        """Ten micro-batches and N = 4. The learning rate is zero, so that all gradients are of the same weights."""
        return digits_scene(10, learning_rate=0.0)

    def measure(self, kind: Kind) -> float:
        """The third update's gradient against that of micro-batches 9 and 10 in one batch."""
        scene = self.scene()
        applied = gradients_applied(scene, self.code(kind))[-1]
        return float(applied.norm() / whole_gradient(scene, 8, 10).norm())

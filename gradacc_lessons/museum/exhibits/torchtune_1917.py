"""Losses are added up, and the backward waits for the end of the window."""

from gradacc_lessons.detective.rig import GraphMeter
from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import LoopExhibit
from gradacc_lessons.text import Text


class Torchtune1917(LoopExhibit):
    """meta-pytorch/torchtune, pull request 1917."""

    project, year = "torchtune", 2024
    thread = "https://github.com/meta-pytorch/torchtune/pull/1917"
    finding, lesson, scope = "sum_then_backward", "03_the_memory_wall", "items"
    title = Text("One backward for the whole window", "Eén backward voor het hele venster")
    symptom = Text(
        "An earlier change (1875) made the loss right per token: add up the losses, divide by the tokens of the "
        "window, then one backward. The numbers were right. A second change soon put the backward after each "
        "batch back.",
        "Een eerdere wijziging (1875) maakte de loss per token goed: tel de losses op, deel door de tokens van het "
        "venster, dan één backward. De getallen klopten. Een tweede wijziging zette de backward na elke batch al snel "
        "terug.",
    )
    number_name = Text(
        "memory of the graphs alive at once, in graphs of one micro-batch (N = 4)",
        "geheugen van de grafen die tegelijk bestaan, in grafen van één micro-batch (N = 4)",
    )
    expected = (4.0, 1.0)
    fix = Text(
        "Backward on each sum at once, and divide the gradient by the tokens when the window is complete.",
        "Meteen backward op elke som, en de gradient door de tokens delen zodra het venster compleet is.",
    )
    explanation = Text(
        "A graph is freed by its backward. While the losses wait to be added up, every micro-batch's activations stay "
        "in memory, and the window costs what the full batch would. The gradient is the same.",
        "Een graaf wordt vrijgegeven door zijn backward. Zolang de losses wachten om opgeteld te worden, blijven de "
        "activaties van elke micro-batch in het geheugen, en kost het venster wat de volle batch zou kosten. De "
        "gradient is dezelfde.",
    )

    @staticmethod
    def bug(model, optimizer, micro_batches, loss_fn, accumulation_steps, *, count):
        total, tokens = 0.0, 0
        for index, batch in enumerate(micro_batches):
            tokens += count(batch)
            total = total + loss_fn(model, batch) * count(batch)
            last = index + 1 == len(micro_batches)
            if (index + 1) % accumulation_steps == 0 or last:
                (total / tokens).backward()
                optimizer.step()
                optimizer.zero_grad()
                total, tokens = 0.0, 0

    @staticmethod
    def fixed(model, optimizer, micro_batches, loss_fn, accumulation_steps, *, count):
        tokens = 0
        for index, batch in enumerate(micro_batches):
            tokens += count(batch)
            (loss_fn(model, batch) * count(batch)).backward()
            last = index + 1 == len(micro_batches)
            if (index + 1) % accumulation_steps == 0 or last:
                for parameter in model.parameters():
                    parameter.grad /= tokens
                optimizer.step()
                optimizer.zero_grad()
                tokens = 0

    def measure(self, kind: Kind) -> float:
        """What graphs keep for their backward, parameters left out."""
        scene = self.scene()
        one, whole = GraphMeter(scene.model), GraphMeter(scene.model)
        with one.watch():
            scene.loss_fn(scene.model, scene.micro_batches[0])
        with whole.watch():
            scene.run(self.code(kind))
        return whole.peak / one.peak

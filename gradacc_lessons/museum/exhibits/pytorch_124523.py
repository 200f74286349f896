"""An optimizer that updates as soon as a gradient is there."""

import torch

from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import TapeExhibit
from gradacc_lessons.museum.scene import Scene, digits_scene
from gradacc_lessons.text import Text


class PyTorch124523(TapeExhibit):
    """pytorch/pytorch, issue 124523."""

    project, year = "PyTorch", 2024
    thread = "https://github.com/pytorch/pytorch/issues/124523"
    finding, lesson = "step_every_micro_batch", "07_once_per_window"
    title = Text("An update in every backward", "Een update in elke backward")
    symptom = Text(
        "No error: apply_optimizer_in_backward, which saves the memory of the gradients, does not know what a window "
        "is. With 64 examples in micro-batches of 8 it makes eight updates instead of one.",
        "Geen fout: apply_optimizer_in_backward, dat het geheugen van de gradients spaart, weet niet wat een venster "
        "is. Met 64 voorbeelden in micro-batches van 8 doet het acht updates in plaats van één.",
    )
    number_name = Text(
        "how often the first weight matrix changes in a window of 64 examples (N = 8)",
        "hoe vaak de eerste gewichtsmatrix verandert in een venster van 64 voorbeelden (N = 8)",
    )
    expected = (8.0, 1.0)
    fix = Text(
        "One or the other: let the hook wait for the last micro-batch, which keeps the gradients in memory again. The "
        "issue asks for a warning; it is open.",
        "Het een of het ander: laat de hook op de laatste micro-batch wachten, en dan staan de gradients weer in het "
        "geheugen. De issue vraagt om een waarschuwing; hij staat open.",
    )
    explanation = Text(
        "The gradient of a parameter is applied and dropped inside backward, so nothing can add up. There are N small "
        "updates, each from other weights, instead of one from the mean.",
        "De gradient van een parameter wordt binnen de backward toegepast en weggegooid, dus er kan niets optellen. "
        "Er zijn N kleine updates, elk vanuit andere gewichten, in plaats van één met het gemiddelde.",
    )
    epochs = 1

    @staticmethod
    def bug(model, optimizer, micro_batches, loss_fn, accumulation_steps, *, optimizers):
        def update(parameter):
            optimizers[parameter].step()
            optimizers[parameter].zero_grad()

        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(update)
        for batch in micro_batches:
            (loss_fn(model, batch) / accumulation_steps).backward()

    @staticmethod
    def fixed(model, optimizer, micro_batches, loss_fn, accumulation_steps, *, optimizers):
        def update(parameter):
            if last:
                optimizers[parameter].step()
                optimizers[parameter].zero_grad()

        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(update)
        for index, batch in enumerate(micro_batches):
            last = (index + 1) % accumulation_steps == 0
            (loss_fn(model, batch) / accumulation_steps).backward()

    def scene(self) -> Scene:
        """One window of 64 examples in micro-batches of 8, as in the thread; each parameter has its own optimizer."""
        scene = digits_scene(8, 8, accumulation_steps=8)
        parameters = list(scene.model.parameters())
        scene.offered["optimizers"] = {parameter: torch.optim.SGD([parameter], 0.1) for parameter in parameters}
        return scene

    def measure(self, kind: Kind) -> float:
        """The updates of its optimizer are counted."""
        scene, made = self.scene(), list[object]()
        first = next(iter(scene.offered["optimizers"].values()))
        first.register_step_post_hook(lambda *_: made.append(None))
        scene.run(self.code(kind))
        return float(len(made))

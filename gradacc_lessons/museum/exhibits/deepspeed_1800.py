"""Gradients of many micro-batches, added up in bfloat16."""

import torch

from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import TapeExhibit
from gradacc_lessons.museum.measures import flat_gradient, gradients_applied
from gradacc_lessons.museum.scene import Scene, digits_scene
from gradacc_lessons.text import Text

N = 256


class DeepSpeed1800(TapeExhibit):
    """deepspeedai/DeepSpeed, issue 1800."""

    project, year = "DeepSpeed", 2022
    thread = "https://github.com/deepspeedai/DeepSpeed/issues/1800"
    finding, lesson = "low_precision_buffer", "08_mixed_precision"
    title = Text("The sum is kept in 16 bits", "De som staat in 16 bits")
    symptom = Text(
        "Somebody notices that the new bfloat16 mode adds gradients up in bfloat16. The issue expects little harm at "
        "N = 1 and a significant error at large N; a later one (2768) reports runs that diverge now and then.",
        "Iemand merkt dat de nieuwe bfloat16-modus gradients in bfloat16 optelt. De issue verwacht weinig schade bij "
        "N = 1 en een flinke fout bij grote N; een latere (2768) meldt runs die af en toe divergeren.",
    )
    number_name = Text(
        f"distance of the gradient applied from the same sum in float64, as a share of its length (N = {N})",
        f"afstand van de toegepaste gradient tot dezelfde som in float64, als deel van zijn lengte (N = {N})",
    )
    expected = (0.0228, 0.00177)
    fix = Text(
        "Add up in a float32 buffer, and round once, at the end.",
        "Tel op in een float32-buffer, en rond één keer af, aan het eind.",
    )
    explanation = Text(
        "bfloat16 keeps 8 significant bits. Once the sum is 512 times as large as what comes next, adding it changes "
        "nothing any more, and before that each addition rounds. What is left after the fix is the one rounding of "
        "the result to bfloat16.",
        "bfloat16 heeft 8 significante bits. Is de som eenmaal 512 keer zo groot als wat er nog bij komt, dan "
        "verandert optellen niets meer, en daarvóór rondt elke optelling af. Wat er na de reparatie over is, is de ene "
        "afronding van de uitkomst op bfloat16.",
    )
    epochs = 1

    @staticmethod
    def bug(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        for index, batch in enumerate(micro_batches):
            (loss_fn(model, batch) / accumulation_steps).backward()
            if (index + 1) % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()

    @staticmethod
    def fixed(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        sums = [torch.zeros_like(parameter, dtype=torch.float32) for parameter in model.parameters()]
        for index, batch in enumerate(micro_batches):
            (loss_fn(model, batch) / accumulation_steps).backward()
            for total, parameter in zip(sums, model.parameters(), strict=True):
                total += parameter.grad
                parameter.grad = None
            if (index + 1) % accumulation_steps == 0:
                for total, parameter in zip(sums, model.parameters(), strict=True):
                    parameter.grad = total.to(parameter.dtype)
                    total.zero_()
                optimizer.step()
                optimizer.zero_grad()

    def scene(self) -> Scene:
        """One window."""
        return digits_scene(N, 1, accumulation_steps=N, dtype=torch.bfloat16)

    def measure(self, kind: Kind) -> float:
        """The gradient of the one update against the same micro-batches' gradients, added up in float64."""
        scene = self.scene()
        total = torch.zeros(sum(parameter.numel() for parameter in scene.model.parameters()), dtype=torch.float64)
        for batch in scene.micro_batches:
            scene.model.zero_grad()
            (scene.loss_fn(scene.model, batch) / N).backward()
            total += flat_gradient(scene.model)
        scene.model.zero_grad()
        (applied,) = gradients_applied(scene, self.code(kind))
        return float((applied - total).norm() / total.norm())

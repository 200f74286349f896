"""Clipping after every backward."""

from torch.nn.utils import clip_grad_norm_

from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import TapeExhibit
from gradacc_lessons.museum.measures import gradients_applied, whole_gradient
from gradacc_lessons.museum.scene import Scene, digits_scene
from gradacc_lessons.text import Text


class Transformers1563(TapeExhibit):
    """huggingface/transformers, issue 1563."""

    project, year = "transformers", 2019
    thread = "https://github.com/huggingface/transformers/issues/1563"
    finding, lesson = "clip_every_micro_batch", "07_once_per_window"
    title = Text("Clipped after every backward", "Na elke backward geclipt")
    symptom = Text(
        "A reader of the example scripts sees that the gradient is clipped after each backward, not before the "
        "update. An earlier issue (986) had guessed that the last micro-batches then weigh more.",
        "Een lezer van de voorbeeldscripts ziet dat de gradient na elke backward wordt geclipt, en niet voor de "
        "update. Een eerdere issue (986) vermoedde al dat de laatste micro-batches dan zwaarder wegen.",
    )
    number_name = Text(
        "cosine between the first gradient applied and the full batch's (N = 4, threshold 0.1)",
        "cosinus tussen de eerste toegepaste gradient en die van de volle batch (N = 4, drempel 0,1)",
    )
    expected = (0.813, 1.0)
    fix = Text("Clip once, after the last backward.", "Clip één keer, na de laatste backward.")
    explanation = Text(
        "Each clipping shortens what is there so far, and the next micro-batch is added at full length. The result "
        "is as long as the threshold allows, and points too much to where the last micro-batch points.",
        "Elke keer wordt korter gemaakt wat er tot dan toe is, en de volgende micro-batch komt er op volle lengte bij. "
        "De uitkomst is zo lang als de drempel toelaat, en wijst te veel waarheen de laatste micro-batch wijst.",
    )

    @staticmethod
    def bug(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        for index, batch in enumerate(micro_batches):
            (loss_fn(model, batch) / accumulation_steps).backward()
            clip_grad_norm_(model.parameters(), max_norm=0.1)
            if (index + 1) % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()

    @staticmethod
    def fixed(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        for index, batch in enumerate(micro_batches):
            (loss_fn(model, batch) / accumulation_steps).backward()
            if (index + 1) % accumulation_steps == 0:
                clip_grad_norm_(model.parameters(), max_norm=0.1)
                optimizer.step()
                optimizer.zero_grad()

    def scene(self) -> Scene:
        """Two windows."""
        return digits_scene()

    def measure(self, kind: Kind) -> float:
        """The first update's gradient against that of the first window in one batch."""
        scene = self.scene()
        right = whole_gradient(scene)
        applied = gradients_applied(scene, self.code(kind))[0]
        return float(applied @ right / (applied.norm() * right.norm()))

"""Clipping compares its threshold with gradients that are still scaled."""

from torch.nn.utils import clip_grad_norm_

from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import TapeExhibit
from gradacc_lessons.museum.measures import gradients_applied
from gradacc_lessons.museum.scene import Scene, scaled_scene
from gradacc_lessons.text import Text


class EveryDream2trainer175(TapeExhibit):
    """victorchall/EveryDream2trainer, pull request 175."""

    project, year = "EveryDream2trainer", 2023
    thread = "https://github.com/victorchall/EveryDream2trainer/pull/175"
    finding, lesson = "clip_scaled_gradients", "08_mixed_precision"
    title = Text("Clipped before it was unscaled", "Geclipt voor het terugschalen")
    symptom = Text(
        "With the usual threshold of 1.0 training effectively stops. Users have to give thresholds such as 100,000 "
        "or 1,000,000 instead, which are soon wrong again, as the scale moves.",
        "Met de gebruikelijke drempel van 1,0 staat het trainen zo goed als stil. Gebruikers moeten drempels als "
        "100.000 of 1.000.000 geven, en die kloppen al snel niet meer, want de schaal verschuift.",
    )
    number_name = Text(
        "length of the first gradient applied (threshold 0.25)",
        "lengte van de eerste toegepaste gradient (drempel 0,25)",
    )
    expected = (0.25 / 65536, 0.25)
    fix = Text(
        "scaler.unscale_(optimizer) first, then clip, then scaler.step(optimizer).",
        "Eerst scaler.unscale_(optimizer), dan clippen, dan scaler.step(optimizer).",
    )
    explanation = Text(
        "A GradScaler begins with a scale of 65,536. A gradient of length 0.46 is 30,000 long before it is unscaled; "
        "clipped to 0.25 and then divided by 65,536, hardly anything is left of it. All windows are clipped so, "
        "whatever their gradient.",
        "Een GradScaler begint met een schaal van 65.536. Een gradient van lengte 0,46 is voor het terugschalen 30.000 "
        "lang. Geclipt tot 0,25 en dan gedeeld door 65.536 blijft er bijna niets van over. Zo gaat het met elk "
        "venster, wat zijn gradient ook is.",
    )

    @staticmethod
    def bug(model, optimizer, micro_batches, loss_fn, accumulation_steps, *, scaler):
        for index, batch in enumerate(micro_batches):
            scaler.scale(loss_fn(model, batch) / accumulation_steps).backward()
            if (index + 1) % accumulation_steps == 0:
                clip_grad_norm_(model.parameters(), max_norm=0.25)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()

    @staticmethod
    def fixed(model, optimizer, micro_batches, loss_fn, accumulation_steps, *, scaler):
        for index, batch in enumerate(micro_batches):
            scaler.scale(loss_fn(model, batch) / accumulation_steps).backward()
            if (index + 1) % accumulation_steps == 0:
                scaler.unscale_(optimizer)
                clip_grad_norm_(model.parameters(), max_norm=0.25)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()

    def scene(self) -> Scene:
        """With a GradScaler."""
        return scaled_scene()

    def measure(self, kind: Kind) -> float:
        """What the first update applies."""
        return float(gradients_applied(self.scene(), self.code(kind))[0].norm())

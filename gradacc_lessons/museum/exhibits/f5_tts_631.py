"""An average of the weights that moves at every micro-batch."""

from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import TapeExhibit
from gradacc_lessons.museum.measures import updates_of
from gradacc_lessons.museum.scene import Scene, digits_scene
from gradacc_lessons.text import Text


class F5TTS631(TapeExhibit):
    """SWivid/F5-TTS, issue 631."""

    project, year = "F5-TTS", 2024
    thread = "https://github.com/SWivid/F5-TTS/issues/631"
    finding, lesson = "ema_every_micro_batch", "07_once_per_window"
    title = Text("The average of the weights moves N times", "Het gemiddelde van de gewichten verschuift N keer")
    symptom = Text(
        "A reader asks what the idea is behind moving the EMA at each micro-batch, whatever N is. The maintainer "
        "answers that there is none: a bug.",
        "Een lezer vraagt wat het idee is achter een EMA die bij elke micro-batch verschuift, wat N ook is. De "
        "beheerder antwoordt dat er geen idee achter zit: een bug.",
    )
    number_name = Text(
        "moves of the average per update (N = 4)", "verschuivingen van het gemiddelde per update (N = 4)"
    )
    expected = (4.0, 1.0)
    fix = Text("Move the average once, after the update.", "Verschuif het gemiddelde één keer, na de update.")
    explanation = Text(
        "Between two updates the weights stand still, and the average goes towards them N times. What is left of the "
        "old average after an update is decay to the power N: it forgets N times as fast as its decay says.",
        "Tussen twee updates staan de gewichten stil, en het gemiddelde gaat er N keer naartoe. Van het oude "
        "gemiddelde is na een update decay tot de macht N over: het vergeet N keer zo snel als zijn decay zegt.",
    )

    @staticmethod
    def bug(model, optimizer, micro_batches, loss_fn, accumulation_steps, *, average):
        for index, batch in enumerate(micro_batches):
            (loss_fn(model, batch) / accumulation_steps).backward()
            if (index + 1) % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
            average.update_parameters(model)

    @staticmethod
    def fixed(model, optimizer, micro_batches, loss_fn, accumulation_steps, *, average):
        for index, batch in enumerate(micro_batches):
            (loss_fn(model, batch) / accumulation_steps).backward()
            if (index + 1) % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
                average.update_parameters(model)

    def scene(self) -> Scene:
        """An average of the weights stands beside the model."""
        scene = digits_scene()
        average = AveragedModel(scene.model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
        scene.offered["average"] = average
        scene.watch = (average,)
        return scene

    def measure(self, kind: Kind) -> float:
        """Both are counted."""
        scene = self.scene()
        with updates_of(scene) as updates:
            scene.run(self.code(kind))
        return float(scene.offered["average"].n_averaged) / len(updates)

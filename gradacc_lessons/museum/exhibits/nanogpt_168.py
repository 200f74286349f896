"""A mean loss that nobody divides by N."""

from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import LoopExhibit
from gradacc_lessons.museum.measures import first_length
from gradacc_lessons.text import Text


class NanoGPT168(LoopExhibit):
    """karpathy/nanoGPT, issue 168."""

    project, year = "nanoGPT", 2023
    thread = "https://github.com/karpathy/nanoGPT/issues/168"
    finding, lesson, scope = "missing_scale", "02_scale_the_loss", "windows"
    title = Text("The loss is never divided by N", "De loss wordt nooit door N gedeeld")
    symptom = Text(
        "Somebody reads the loop and asks whether the loss should not be divided by the accumulation steps. The author "
        "agrees, and adds that Adam does not mind the scale, but that the clipping threshold has silently been N "
        "times lower.",
        "Iemand leest de lus en vraagt of de loss niet door het aantal accumulation steps gedeeld moet worden. De "
        "auteur is het ermee eens, en voegt toe dat Adam niet om de schaal geeft, maar dat de clipdrempel stilletjes "
        "N keer lager was.",
    )
    number_name = Text(
        "length of the first gradient applied, as a multiple of the full batch's (N = 4)",
        "lengte van de eerste toegepaste gradient, als veelvoud van die van de volle batch (N = 4)",
    )
    expected = (4.0, 1.0)
    fix = Text("Divide each loss by N before its backward.", "Deel elke loss door N, vóór zijn backward.")
    explanation = Text(
        "backward adds to .grad. Four means added up are four times a mean. Adam divides by the size of the gradient, "
        "so its updates hardly change; what compares the gradient with a number of its own does: clipping, SGD's "
        "learning rate, Adam's epsilon, the norm in your log.",
        "backward telt op bij .grad. Vier gemiddelden bij elkaar zijn vier keer een gemiddelde. Adam deelt door de "
        "grootte van de gradient, dus zijn updates veranderen nauwelijks. Wat de gradient met een eigen getal "
        "vergelijkt wel: clippen, de learning rate van SGD, de epsilon van Adam, de norm in je log.",
    )

    @staticmethod
    def bug(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        for index, batch in enumerate(micro_batches):
            loss = loss_fn(model, batch)
            loss.backward()
            if (index + 1) % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()

    @staticmethod
    def fixed(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        for index, batch in enumerate(micro_batches):
            loss = loss_fn(model, batch) / accumulation_steps
            loss.backward()
            if (index + 1) % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()

    def measure(self, kind: Kind) -> float:
        """The first update's gradient against that of the first window in one batch."""
        return first_length(self.scene(), self.code(kind))

"""What is left at the end of an epoch stays in the gradient."""

from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import TapeExhibit
from gradacc_lessons.museum.measures import lengths
from gradacc_lessons.museum.scene import Scene, digits_scene
from gradacc_lessons.text import Text


class Torchtune2745(TapeExhibit):
    """meta-pytorch/torchtune, pull request 2745."""

    project, year = "torchtune", 2025
    thread = "https://github.com/meta-pytorch/torchtune/pull/2745"
    finding, lesson = "tail_leaks", "04_uneven_windows"
    title = Text("The end of an epoch leaks into the next", "Het eind van een epoch lekt in de volgende")
    symptom = Text(
        "The loss drops at the beginning of each epoch, and the accuracy of a DPO run rises above 100 %. With 63 "
        "batches and N = 8, one update in each new epoch has 15 of them.",
        "De loss zakt aan het begin van elke epoch, en de nauwkeurigheid van een DPO-run komt boven 100 %. Met 63 "
        "batches en N = 8 heeft één update in elke nieuwe epoch er 15.",
    )
    number_name = Text(
        "micro-batches behind the longest update (63 in an epoch, N = 8)",
        "micro-batches achter de langste update (63 in een epoch, N = 8)",
    )
    expected = (15.0, 8.0)
    fix = Text(
        "Update at the end of the epoch with what is left, and divide by its number. Another way is to leave it out, "
        "and to zero there.",
        "Doe aan het eind van de epoch een update met wat er over is, en deel door dat aantal. Weglaten kan ook, en "
        "dan daar op nul zetten.",
    )
    explanation = Text(
        "The counter of the loop starts afresh with each epoch, the gradient does not. Seven micro-batches of the old "
        "epoch are still in it when the first eight of the new one are added.",
        "De teller van de lus begint bij elke epoch opnieuw, de gradient niet. Zeven micro-batches van de oude epoch "
        "zitten er nog in als de eerste acht van de nieuwe erbij komen.",
    )

    @staticmethod
    def bug(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        for index, batch in enumerate(micro_batches):
            (loss_fn(model, batch) / accumulation_steps).backward()
            if (index + 1) % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()

    @staticmethod
    def fixed(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        for start in range(0, len(micro_batches), accumulation_steps):
            window = micro_batches[start : start + accumulation_steps]
            for batch in window:
                (loss_fn(model, batch) / len(window)).backward()
            optimizer.step()
            optimizer.zero_grad()

    def scene(self) -> Scene:
        """63 micro-batches and N = 8, as in the thread."""
        return digits_scene(63, 1, accumulation_steps=8)

    def measure(self, kind: Kind) -> float:
        """Counted over two epochs."""
        return float(max(lengths(self.scene(), self.code(kind), self.epochs)))

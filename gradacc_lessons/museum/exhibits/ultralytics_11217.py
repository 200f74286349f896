"""The gradient is zeroed at the start of an epoch, in the middle of a window."""

from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import TapeExhibit
from gradacc_lessons.museum.measures import lengths
from gradacc_lessons.museum.scene import Scene, digits_scene
from gradacc_lessons.text import Text


class Ultralytics11217(TapeExhibit):
    """ultralytics/ultralytics, pull request 11217."""

    project, year = "Ultralytics YOLO", 2024
    thread = "https://github.com/ultralytics/ultralytics/pull/11217"
    finding, lesson = "tail_dropped", "04_uneven_windows"
    title = Text("The end of each epoch is thrown away", "Het eind van elke epoch wordt weggegooid")
    symptom = Text(
        "Found by reading the code. With 120 batches in an epoch and N = 32, the report counts 24 batches that go "
        "backward and are zeroed by the next epoch before any update applies them.",
        "Gevonden door de code te lezen. Met 120 batches in een epoch en N = 32 telt de melding 24 batches die "
        "backward gaan en door de volgende epoch op nul worden gezet, voor een update ze toepast.",
    )
    number_name = Text(
        "updates in four epochs of 30 micro-batches (N = 8)",
        "updates in vier epochs van 30 micro-batches (N = 8)",
    )
    expected = (12.0, 15.0)
    fix = Text(
        "Zero after an update and nowhere else. The windows then run on across the epochs, whole ones all of them.",
        "Zet na een update op nul en nergens anders. De vensters lopen dan door over de epochs heen, en zijn allemaal "
        "heel.",
    )
    explanation = Text(
        "Two places zeroed the gradient: after each update, and at the start of each epoch. Where N does not divide "
        "the epoch, the second one comes in the middle of a window. A fifth of the data never counts, each epoch "
        "anew.",
        "Op twee plaatsen werd de gradient op nul gezet: na elke update, en aan het begin van elke epoch. Waar N niet "
        "op de epoch deelbaar is, komt die tweede midden in een venster. Een vijfde van de data telt nooit mee, elke "
        "epoch opnieuw.",
    )
    epochs = 1  # the loop has four

    @staticmethod
    def bug(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        waiting = 0
        for _ in range(4):
            optimizer.zero_grad()
            waiting = 0
            for batch in micro_batches:
                (loss_fn(model, batch) / accumulation_steps).backward()
                waiting += 1
                if waiting == accumulation_steps:
                    optimizer.step()
                    optimizer.zero_grad()
                    waiting = 0

    @staticmethod
    def fixed(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        waiting = 0
        for _ in range(4):
            for batch in micro_batches:
                (loss_fn(model, batch) / accumulation_steps).backward()
                waiting += 1
                if waiting == accumulation_steps:
                    optimizer.step()
                    optimizer.zero_grad()
                    waiting = 0

    def scene(self) -> Scene:
        """30 micro-batches and N = 8: a quarter of the thread's numbers."""
        return digits_scene(30, 1, accumulation_steps=8)

    def measure(self, kind: Kind) -> float:
        """Counted."""
        return float(len(lengths(self.scene(), self.code(kind), self.epochs)))

"""An update after the very first micro-batch."""

from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import LoopExhibit
from gradacc_lessons.museum.measures import lengths
from gradacc_lessons.museum.scene import Scene, digits_scene
from gradacc_lessons.text import Text


class LLMsFromScratch299(LoopExhibit):
    """rasbt/LLMs-from-scratch, issue 299."""

    project, year = "LLMs-from-scratch", 2024
    thread = "https://github.com/rasbt/LLMs-from-scratch/issues/299"
    finding, lesson, scope = "window_off_by_one", "01_accumulate", "windows"
    title = Text("The first window has one micro-batch", "Het eerste venster heeft één micro-batch")
    symptom = Text(
        "A reader of the bonus code of chapter 6, run with 8 accumulation steps, "
        "notices that the condition is true for the first batch already.",
        "Een lezer van de bonuscode van hoofdstuk 6, gedraaid met 8 accumulation "
        "steps, merkt op dat de voorwaarde al bij de eerste batch waar is.",
    )
    number_name = Text("micro-batches behind the first update (N = 8)", "micro-batches achter de eerste update (N = 8)")
    expected = (1.0, 8.0)
    fix = Text(
        "Count from one: (index + 1) % N == 0. The book's repair also updates after the last batch.",
        "Tel vanaf één: (index + 1) % N == 0. De reparatie van het boek doet ook een update na de laatste batch.",
    )
    explanation = Text(
        "0 is divisible by everything. The first update comes after one micro-batch, all windows are shifted by one, "
        "and the last micro-batches of the epoch wait for an update that does not come.",
        "0 is door alles deelbaar. De eerste update komt na één micro-batch, alle vensters zijn één plaats verschoven, "
        "en de laatste micro-batches van de epoch wachten op een update die niet komt.",
    )

    @staticmethod
    def bug(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        for index, batch in enumerate(micro_batches):
            loss = loss_fn(model, batch) / accumulation_steps
            loss.backward()
            if index % accumulation_steps == 0:
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

    def scene(self) -> Scene:
        """N = 8, as in the thread."""
        return digits_scene(16, 1, accumulation_steps=8)

    def measure(self, kind: Kind) -> float:
        """Counted before the first update."""
        return float(lengths(self.scene(), self.code(kind))[0])

"""The whole gradient is divided after every micro-batch."""

from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import TapeExhibit
from gradacc_lessons.museum.measures import first_error
from gradacc_lessons.museum.scene import Scene, digits_scene
from gradacc_lessons.text import Text


class Torchtitan1733(TapeExhibit):
    """pytorch/torchtitan, issue 1733."""

    project, year = "torchtitan", 2025
    thread = "https://github.com/pytorch/torchtitan/issues/1733"
    finding, lesson = "grad_divided_every_micro_batch", "02_scale_the_loss"
    title = Text("What came first is divided again and again", "Wat het eerst kwam, wordt telkens weer gedeeld")
    symptom = Text(
        "With pipeline parallelism the loss curves and the gradient norms of an accumulated run are far from those of "
        "a run without pipeline.",
        "Met een pipeline wijken de losscurves en de gradientnormen van een run met accumulatie ver af van die van een "
        "run zonder pipeline.",
    )
    number_name = Text(
        "distance of the first gradient applied from the full batch's, as a share of its length (N = 4)",
        "afstand van de eerste toegepaste gradient tot die van de volle batch, als deel van zijn lengte (N = 4)",
    )
    expected = (0.727, 0.0)
    fix = Text(
        "Divide each loss, not the gradient that is being added up (scale_grads=False in PyTorch's schedules).",
        "Deel elke loss, niet de gradient die nog wordt opgeteld (scale_grads=False in de schema's van PyTorch).",
    )
    explanation = Text(
        "The pipeline's schedule divides the whole of .grad at the end of each call. That is right for one call. With "
        "four calls in a window the first is divided four times: the sum becomes an exponential average. The exhibit "
        "has one micro-batch where a pipeline has several chunks.",
        "Het schema van de pipeline deelt aan het eind van elke aanroep heel .grad. Voor één aanroep klopt dat. Met "
        "vier aanroepen in een venster wordt de eerste vier keer gedeeld: de som wordt een exponentieel gemiddelde. "
        "Hier is er één micro-batch waar een pipeline er meer tegelijk verwerkt.",
    )

    @staticmethod
    def bug(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        for index, batch in enumerate(micro_batches):
            loss_fn(model, batch).backward()
            for parameter in model.parameters():
                parameter.grad /= accumulation_steps
            if (index + 1) % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()

    @staticmethod
    def fixed(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        for index, batch in enumerate(micro_batches):
            (loss_fn(model, batch) / accumulation_steps).backward()
            if (index + 1) % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()

    def scene(self) -> Scene:
        """Two windows."""
        return digits_scene()

    def measure(self, kind: Kind) -> float:
        """The first update's gradient against that of the first window in one batch."""
        return first_error(self.scene(), self.code(kind))

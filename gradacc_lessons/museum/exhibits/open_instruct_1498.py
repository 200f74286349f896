"""An engine that believes every micro-batch to be the last of its window."""

from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import LoopExhibit
from gradacc_lessons.museum.measures import first_error
from gradacc_lessons.text import Text


class Engine:
    """Adds gradients up in a buffer of its own, and hands the buffer over at the end of a window."""

    def __init__(self, model):
        self.parameters, self.buffer = list(model.parameters()), None

    def backward(self, loss, ends_window):
        """Add the gradient of `loss`; at the end of a window, put the sum into .grad and start afresh."""
        for parameter in self.parameters:
            parameter.grad = None
        loss.backward()
        new = [parameter.grad for parameter in self.parameters]
        self.buffer = new if self.buffer is None else [a + b for a, b in zip(self.buffer, new, strict=True)]
        if ends_window:
            for parameter, gradient in zip(self.parameters, self.buffer, strict=True):
                parameter.grad = gradient
            self.buffer = None


class OpenInstruct1498(LoopExhibit):
    """allenai/open-instruct, pull request 1498."""

    project, year = "open-instruct", 2026
    thread = "https://github.com/allenai/open-instruct/pull/1498"
    finding, lesson, scope = "zero_grad_every_micro_batch", "07_once_per_window", "windows"
    title = Text("Only the last micro-batch counts", "Alleen de laatste micro-batch telt")
    symptom = Text(
        "No error, with DeepSpeed's ZeRO-2 only: the loop accumulates by hand, while DeepSpeed was told that N is 1. "
        "Of each window only the last micro-batch's gradient survives to the update.",
        "Geen fout, en alleen met ZeRO-2 van DeepSpeed: de lus telt zelf op, terwijl DeepSpeed te horen kreeg dat N 1 "
        "is. Van elk venster haalt alleen de gradient van de laatste micro-batch de update.",
    )
    number_name = Text(
        "distance of the first gradient applied from the full batch's, as a share of its length (N = 4)",
        "afstand van de eerste toegepaste gradient tot die van de volle batch, als deel van zijn lengte (N = 4)",
    )
    expected = (0.791, 0.0)
    fix = Text(
        "Tell the engine which backward ends a window (set_gradient_accumulation_boundary in DeepSpeed).",
        "Vertel de engine welke backward een venster afsluit (set_gradient_accumulation_boundary in DeepSpeed).",
    )
    explanation = Text(
        "With N = 1 every backward ends a window, and the engine starts a new sum after it. Two owners of the window "
        "did not agree on where it ends. In the exhibit a small engine stands in for DeepSpeed's buffers.",
        "Met N = 1 sluit elke backward een venster af, en daarna begint de engine een nieuwe som. Twee eigenaars van "
        "het venster waren het niet eens over waar het eindigt. Hier vervangt een kleine engine DeepSpeeds buffers.",
    )

    @staticmethod
    def bug(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        engine = Engine(model)
        for index, batch in enumerate(micro_batches):
            last = (index + 1) % accumulation_steps == 0
            engine.backward(loss_fn(model, batch) / accumulation_steps, ends_window=True)
            if last:
                optimizer.step()

    @staticmethod
    def fixed(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        engine = Engine(model)
        for index, batch in enumerate(micro_batches):
            last = (index + 1) % accumulation_steps == 0
            engine.backward(loss_fn(model, batch) / accumulation_steps, ends_window=last)
            if last:
                optimizer.step()

    def measure(self, kind: Kind) -> float:
        """The first update's gradient against that of the first window in one batch."""
        return first_error(self.scene(), self.code(kind))

"""A model that takes any keyword and uses none is trusted to divide by the tokens of the window."""

import inspect

from gradacc_lessons.museum.exhibit import Kind
from gradacc_lessons.museum.kinds import LoopExhibit
from gradacc_lessons.museum.measures import first_length
from gradacc_lessons.museum.scene import Scene, digits_scene
from gradacc_lessons.text import Text


def takes_any_keyword(function):
    """Whether the function has a **kwargs."""
    kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    return inspect.Parameter.VAR_KEYWORD in kinds


class LlamaFactory7443(LoopExhibit):
    """hiyouga/LlamaFactory, issue 7443."""

    project, year = "LLaMA-Factory", 2025
    thread = "https://github.com/hiyouga/LlamaFactory/issues/7443"
    finding, lesson, scope = "missing_scale", "02_scale_the_loss", "windows"
    title = Text("Nobody divides: each trusts the other", "Niemand deelt: de een rekent op de ander")
    symptom = Text(
        "At one and the same total batch the first loss is 6.4, 13.65, 69 and 138 for N = 2, 4, 16 and 32. It should "
        "not depend on N at all.",
        "Bij één en dezelfde totale batch is de eerste loss 6,4; 13,65; 69 en 138 voor N = 2, 4, 16 en 32. Hij hoort "
        "helemaal niet van N af te hangen.",
    )
    number_name = Text(
        "length of the first gradient applied, as a multiple of the full batch's (N = 16)",
        "lengte van de eerste toegepaste gradient, als veelvoud van die van de volle batch (N = 16)",
    )
    expected = (16.0, 1.0)
    fix = Text(
        "Say whether the model divides by the window's items, and do not guess it from its signature. The thread is "
        "marked solved; a later one (7743) shows the flag model_accepts_loss_kwargs = False.",
        "Zeg óf het model door de items van het venster deelt, en raad het niet uit zijn signatuur. De thread staat "
        "als opgelost; een latere (7743) laat de vlag model_accepts_loss_kwargs = False zien.",
    )
    explanation = Text(
        "Since the repair of 2024 transformers' Trainer hands the number of items in the window to models that take "
        "it, and then leaves the division to them. Here the forward takes **kwargs, so it looks as if it would "
        "divide, and returns a plain mean. The gradient is N times too long, and so is the loss in the log.",
        "Sinds de reparatie van 2024 geeft de Trainer van transformers het aantal items van het venster aan modellen "
        "die dat aannemen, en laat het delen dan aan hen over. Hier neemt de forward **kwargs aan, dus het lijkt alsof "
        "hij deelt, en hij geeft gewoon een gemiddelde. De gradient is N keer te lang, en de loss in de log ook.",
    )

    @staticmethod
    def bug(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        def forward(batch, **kwargs):
            return loss_fn(model, batch)

        model_divides = takes_any_keyword(forward)
        for index, batch in enumerate(micro_batches):
            loss = forward(batch, num_items_in_batch=len(batch[0]) * accumulation_steps)
            if not model_divides:
                loss = loss / accumulation_steps
            loss.backward()
            if (index + 1) % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()

    @staticmethod
    def fixed(model, optimizer, micro_batches, loss_fn, accumulation_steps):
        def forward(batch, **kwargs):
            return loss_fn(model, batch)

        model_divides = False
        for index, batch in enumerate(micro_batches):
            loss = forward(batch, num_items_in_batch=len(batch[0]) * accumulation_steps)
            if not model_divides:
                loss = loss / accumulation_steps
            loss.backward()
            if (index + 1) % accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()

    def scene(self) -> Scene:
        """N = 16, as in the thread."""
        return digits_scene(16, 2, accumulation_steps=16)

    def measure(self, kind: Kind) -> float:
        """The first update's gradient against that of the first window in one batch."""
        return first_length(self.scene(), self.code(kind))

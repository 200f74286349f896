"""The exercises of lesson 10: a model of one's own that can be planned, and the quickest window within a budget."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from gradacc_lessons.quiz.call_in_child import call_in_child, followed_by, whole_pair
from gradacc_lessons.quiz.examine_parts import FAULTS, LONGEST_TEXT, PLANNED_BUDGET, PLANNED_TARGET, examine
from gradacc_lessons.quiz.exercise import Exercise, WrongAnswer, did_not_return
from gradacc_lessons.quiz.grade import Grade, fill
from gradacc_lessons.text import Text

if TYPE_CHECKING:
    from gradacc_lessons.memory.profile import MemoryProfile

PLAN_SECONDS = 30.0
"""For a model to be followed and run once, on a slow machine as well."""

_MODEL = """import torch
from torch import nn
from torch.nn import functional as F


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(500, 64)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, 256, batch_first=True), 2)
        self.head = nn.Linear(64, 4)

    def forward(self, tokens):
        return self.head(self.encoder(self.tokens(tokens)).mean(dim=1))


"""
_BATCH = "torch.randint(500, (size, {length})), torch.randint(4, (size,))"
_LOSS = "        tokens, labels = batch\n        return {loss}\n\n"


def _setup(
    build: str = "Classifier()",
    loss: str = "F.cross_entropy(model(tokens), labels)",
    batch: str = _BATCH.format(length=LONGEST_TEXT),
    first: str = "",
    returned: str = "build_model, loss_fn, make_batch",
) -> str:
    """A `setup`, with one of its pieces replaced."""
    return (
        f"{_MODEL}def setup():\n{first}    def build_model():\n        return {build}\n\n"
        f"    def loss_fn(model, batch):\n{_LOSS.format(loss=loss)}"
        f"    def make_batch(size):\n        return {batch}\n\n    return {returned}\n"
    )


def _wrong_setup(fault: str, **pieces: str) -> WrongAnswer:
    return WrongAnswer(_setup(**pieces), fault, FAULTS[fault].words)


@dataclass(frozen=True)
class PartsCheck:
    """A function that returns functions: they are tried out, and planned, in the process that they live in."""

    def __call__(self, exercise: Exercise, function: Callable[..., Any]) -> Grade:
        returned = call_in_child(
            followed_by(function, examine), [()], read=lambda value: value, time_limit=PLAN_SECONDS
        )
        if returned.problem is not None:
            return did_not_return(exercise, returned)
        verdict, *figures = returned.values[0]
        fault = list(FAULTS)[int(verdict) - 1] if verdict else None
        if fault is not None:
            shown = dict(zip("ab", figures, strict=False))
            return _not_yet(fault, FAULTS[fault].words, fill(FAULTS[fault].seen, shown))
        return Grade(1.0, True, _as_planned(*figures))


def _as_planned(accumulation_steps: float, predicted: float, measured: float) -> Text:
    from gradacc_lessons.memory.forecast import balanced

    shape = " + ".join(map(str, balanced(PLANNED_TARGET, int(accumulation_steps))))
    asked = {"target": PLANNED_TARGET, "budget": PLANNED_BUDGET}
    said = fill(PLANNED, {**asked, "shape": shape, "predicted": round(predicted, 1)})
    return _both(said, fill(RAN, {"measured": round(measured, 1)})) if measured else said


PLANNED = Text(
    "`plan` understands your model. It cuts {target} examples, for {budget} MiB, into {shape}, with a predicted peak "
    "of {predicted} MiB.",
    "`plan` begrijpt je model. Het verdeelt {target} voorbeelden, voor {budget} MiB, in {shape}, met een voorspelde "
    "piek van {predicted} MiB.",
)
RAN = Text("A real window took {measured} MiB.", "Een echt venster kostte {measured} MiB.")

PLAN_YOUR_OWN = Exercise(
    key="plan_your_own",
    function="setup",
    statement=Text(
        f"`Classifier` reads texts of 5 to {LONGEST_TEXT} tokens (numbers below 500), padded to the longest of their "
        "batch, and picks one of 4 classes. Write `setup()`, so that `plan` can plan it. It returns three functions: "
        "`build_model()` gives the model, `loss_fn(model, batch)` its mean cross-entropy, and `make_batch(size)` the "
        "batch of `size` texts that needs the most memory, as (tokens, labels). Which tokens those are does not "
        "matter.",
        f"`Classifier` leest teksten van 5 tot {LONGEST_TEXT} tokens (getallen onder de 500), aangevuld tot de langste "
        "van hun batch, en kiest een van 4 klassen. Schrijf `setup()`, zodat `plan` hem kan plannen. Die geeft drie "
        "functies terug: `build_model()` geeft het model, `loss_fn(model, batch)` de gemiddelde cross-entropy, en "
        "`make_batch(size)` de batch van `size` teksten die het meeste geheugen kost, als (tokens, labels). Welke "
        "tokens dat zijn doet er niet toe.",
    ),
    starter=_MODEL + 'def setup():\n    """What `plan` asks for: build_model, loss_fn and make_batch."""\n'
    "    # return build_model, loss_fn, make_batch\n    raise NotImplementedError\n",
    hints=(
        Text(
            "The functions go inside `setup`, and you return them without calling them. What does each one get, and "
            "what does it give back?",
            "De functies staan binnen `setup`, en je geeft ze terug zonder ze aan te roepen. Wat krijgt elke functie, "
            "en wat geeft die terug?",
        ),
        Text(
            "Memory goes by the shape of a batch, not by the tokens in it: `torch.randint` will do. How many rows, "
            "and how many columns at worst?",
            "Voor het geheugen telt de vorm van een batch, niet welke tokens erin staan: `torch.randint` is genoeg. "
            "Hoeveel rijen, en hoeveel kolommen in het ergste geval?",
        ),
        Text(
            "`F.cross_entropy(logits, labels)` is a mean already. Give it what the model in the argument makes of the "
            "tokens, and return what comes out as it is.",
            "`F.cross_entropy(logits, labels)` is al een gemiddelde. Geef die wat het model uit het argument van de "
            "tokens maakt, en geef terug wat eruit komt, zonder er iets aan te doen.",
        ),
    ),
    solution=_setup(),
    wrong=(
        _wrong_setup("no_parts", returned="build_model(), loss_fn, make_batch"),
        _wrong_setup("size_ignored", batch=_BATCH.format(length=LONGEST_TEXT).replace("size", "8")),
        _wrong_setup("length_by_chance", batch=_BATCH.format(length="int(torch.randint(5, 97, (size,)).max())")),
        _wrong_setup("not_longest", batch=_BATCH.format(length=48)),
        _wrong_setup("no_model", build="Classifier"),
        _wrong_setup("same_model", first="    model = Classifier()\n\n", build="model"),
        _wrong_setup(
            "shares_parts",
            first="    from copy import copy\n\n    model = Classifier()\n\n",
            build="copy(model)",
        ),
        _wrong_setup("another_model", build="nn.Sequential(nn.Embedding(500, 4), nn.Flatten(), nn.Linear(384, 4))"),
        _wrong_setup("not_scalar", loss='F.cross_entropy(model(tokens), labels, reduction="none")'),
        _wrong_setup("no_graph", loss="F.cross_entropy(model(tokens), labels).item()"),
        _wrong_setup("other_model", first="    mine = Classifier()\n\n", loss="F.cross_entropy(mine(tokens), labels)"),
        _wrong_setup("sum_not_mean", loss='F.cross_entropy(model(tokens), labels, reduction="sum")'),
        _wrong_setup("not_the_mean", loss="F.cross_entropy(model(tokens), labels) / len(labels)"),
    ),
    judge=PartsCheck(),
)

TARGET, BUDGET_MEBIBYTES = 90, 68
"""What the second exercise asks for: examples per update, and the MiB that there are for them."""
NO_TRIPLE = Text(
    "`choose` must return three things: b and N, whole numbers of at least 1, and True or False for checkpointing.",
    "`choose` moet drie dingen teruggeven: b en N, hele getallen van minstens 1, en True of False voor checkpointing.",
)
MISSES_TARGET = Text(
    "That is another number of examples per update than asked.",
    "Dat is een ander aantal voorbeelden per update dan gevraagd.",
)
OVER_BUDGET = Text("This window takes more than the budget.", "Dit venster kost meer dan het budget.")
FORGETS_WHAT_STAYS = Text(
    "The activations alone would fit. But parameters, gradients and optimizer state are there too, whatever b is.",
    "De activaties alleen zouden passen. Maar parameters, gradients en optimizertoestand zijn er ook, hoe groot b ook "
    "is.",
)
STILL_OVER = Text(
    "Checkpointing lowers the price of an example, and it is not nothing. This window still takes more than the "
    "budget.",
    "Checkpointing verlaagt de prijs van een voorbeeld, maar niet tot nul. Dit venster kost nog steeds meer dan het "
    "budget.",
)
NOT_NEEDED = Text(
    "It fits, but it computes every forward twice. A smaller micro-batch would have made room without that.",
    "Het past, maar het rekent elke forward twee keer uit. Een kleinere micro-batch had ook ruimte gemaakt, zonder "
    "dat werk.",
)
N_TOO_LARGE = Text(
    "It fits, but N is larger than it needs to be: a larger micro-batch fits as well.",
    "Het past, maar N is groter dan nodig: een grotere micro-batch past ook.",
)
QUICKEST = Text(
    "It fits, nothing is computed twice, and there are no more micro-batches than needed.",
    "Het past, niets wordt dubbel uitgerekend, en er zijn niet meer micro-batches dan nodig.",
)


@dataclass(frozen=True)
class TripleCheck:
    """A function that returns b, N and whether to checkpoint; what happens with them decides."""

    verdict: Callable[[int, int, bool], Grade]
    """Tries the choice out."""

    def __call__(self, exercise: Exercise, function: Callable[..., Any]) -> Grade:
        returned = call_in_child(followed_by(function, as_numbers), [()], read=whole_triple)
        if returned.problem is not None:
            return did_not_return(exercise, returned)
        (triple,) = returned.values
        if triple is None or min(triple[:2]) < 1:
            return Grade(0.0, False, NO_TRIPLE, "no_triple")
        return self.verdict(*triple)


def as_numbers(value: Any) -> Any:
    """(b, N, True) as three numbers, which can come back from the checking process; anything else as it is."""
    if isinstance(value, tuple | list) and len(value) == 3 and isinstance(value[2], bool):
        return [value[0], value[1], int(value[2])]
    return None


def whole_triple(value: Any) -> tuple[int, int, bool] | None:
    """What came back, if it was b, N and a truth value."""
    pair = whole_pair(value[:2]) if isinstance(value, list) else None
    return (*pair, bool(value[2])) if pair is not None else None


def run_and_judge(micro_batch_size: int, accumulation_steps: int, checkpointing: bool) -> Grade:
    """Run a window of this b and N and compare its measured peak with the budget, and its work with what is needed.

    Time is not measured here: what takes it is what is computed, and that can be counted.
    """
    b, n = micro_batch_size, accumulation_steps
    if b * n != TARGET:
        return _not_yet("misses_target", MISSES_TARGET, Text(f"{b} x {n} = {b * n:,}.", f"{b} x {n} = {b * n}."))
    from gradacc_lessons.memory.sizes import MEBIBYTE

    profile = _measured(b, n, checkpointing)
    over = profile.peak_bytes / MEBIBYTE - BUDGET_MEBIBYTES
    if over > 0:
        alone = profile.by_category["saved activations"] / MEBIBYTE <= BUDGET_MEBIBYTES
        fault, words = _too_much(alone, checkpointing)
        return _not_yet(fault, words, Text(f"Measured: {over:.0f} MiB too much.", f"Gemeten: {over:.0f} MiB te veel."))
    spare = Text(f"Measured: {-over:.0f} MiB to spare.", f"Gemeten: {-over:.0f} MiB over.")
    if checkpointing:
        return _not_yet("checkpointing_not_needed", NOT_NEEDED, spare)
    larger = next((size for size in range(b + 1, TARGET + 1) if TARGET % size == 0), None)
    if larger is not None and _measured(larger, TARGET // larger, False).peak_bytes <= BUDGET_MEBIBYTES * MEBIBYTE:
        return _not_yet("n_too_large", N_TOO_LARGE, spare)
    return Grade(1.0, True, _both(QUICKEST, spare))


def _too_much(activations_alone_fit: bool, checkpointing: bool) -> tuple[str, Text]:
    if checkpointing:
        return "checkpointed_and_over", STILL_OVER
    return ("forgets_what_stays", FORGETS_WHAT_STAYS) if activations_alone_fit else ("over_budget", OVER_BUDGET)


@cache
def _measured(micro_batch_size: int, accumulation_steps: int, checkpointing: bool) -> "MemoryProfile":
    """The memory of a window of the lesson's model that really runs: its micro-batches after the second only wait.

    They do what the second does.
    """
    from gradacc_lessons.lessons.peaks import LONGEST, recipe_for
    from gradacc_lessons.memory.loop import bring_state_into_being, one_update
    from gradacc_lessons.memory.measure import measure_peak
    from gradacc_lessons.memory.predict import TRACED_MICRO_BATCHES, built
    from gradacc_lessons.optimizers import make_optimizer
    from gradacc_lessons.tasks import chat

    recipe = replace(recipe_for("adamw", micro_batch_size, accumulation_steps), checkpointing=checkpointing)
    task = chat(length=LONGEST)
    model = built(lambda: task.build_model(recipe.seed), recipe)
    optimizer = make_optimizer(model, recipe)
    bring_state_into_being(optimizer, recipe)
    window = [task.make_batch(micro_batch_size) for _ in range(accumulation_steps)]
    run = window[:TRACED_MICRO_BATCHES]
    return measure_peak(
        lambda: one_update(model, optimizer, run, task.loss_fn, recipe), model=model, optimizer=optimizer, inputs=window
    )


def _not_yet(fault: str, words: Text, measured: Text) -> Grade:
    return Grade(0.0, False, _both(words, measured), fault)


def _both(first: Text, second: Text) -> Text:
    return Text(f"{first.en} {second.en}".strip(), f"{first.nl} {second.nl}".strip())


def _choice(returned: str, fault: str, message: Text) -> WrongAnswer:
    return WrongAnswer(f"def choose():\n    {returned}\n", fault, message)


CHOOSE_WITH_CHECKPOINTING = Exercise(
    key="choose_with_checkpointing",
    function="choose",
    statement=Text(
        f"Write `choose()`: it returns b, N and whether to checkpoint (True or False), for the quickest update of "
        f"{TARGET} examples in equal micro-batches that fits in {BUDGET_MEBIBYTES} MiB. The model is the lesson's, "
        "with AdamW and T = 128. What counts as time is what is computed, and of two windows that compute the same, "
        "the one with fewer micro-batches is quicker. The peak of yours is measured.",
        f"Schrijf `choose()`: geef b, N en True of False voor checkpointing terug, voor de snelste update van {TARGET} "
        f"voorbeelden in gelijke micro-batches die in {BUDGET_MEBIBYTES} MiB past. Het model is dat van de les, met "
        "AdamW en T = 128. Als tijd telt wat er berekend wordt, en van twee vensters die evenveel berekenen is dat met "
        "de minste micro-batches het snelst. De piek van het jouwe wordt gemeten.",
    ),
    starter='def choose():\n    """b, N and checkpointing for 90 examples per update within 68 MiB."""\n'
    "    # return b, N, True or False\n    raise NotImplementedError\n",
    hints=(
        Text(
            "What does an example cost in work without checkpointing: one forward and one backward. And with it?",
            "Wat kost een voorbeeld aan werk zonder checkpointing: een forward en een backward. En met?",
        ),
        Text(
            "Smaller micro-batches compute no more than large ones. Is there one that fits without checkpointing?",
            "Kleinere micro-batches berekenen niet meer dan grote. Is er een die zonder checkpointing past?",
        ),
        Text(
            "`predict_peak` says what a recipe would take. Try the sizes that divide the target, from large to small.",
            "`predict_peak` zegt wat een recept zou kosten. Probeer de groottes waardoor je het doel kunt delen, van "
            "groot naar klein.",
        ),
    ),
    solution="def choose():\n    return 10, 9, False\n",
    wrong=(
        _choice("return 15, 6, False", "forgets_what_stays", FORGETS_WHAT_STAYS),
        _choice("return 45, 2, False", "over_budget", OVER_BUDGET),
        _choice("return 30, 3, True", "checkpointing_not_needed", NOT_NEEDED),
        _choice("return 45, 2, True", "checkpointed_and_over", STILL_OVER),
        _choice("b = 12\n    return b, 90 // b, False", "misses_target", MISSES_TARGET),
        _choice("return 5, 18, False", "n_too_large", N_TOO_LARGE),
        _choice("return 10, 9", "no_triple", NO_TRIPLE),
    ),
    judge=TripleCheck(run_and_judge),
)

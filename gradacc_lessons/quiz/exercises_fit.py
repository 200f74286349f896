"""The exercises of lesson 10: a model of one's own that can be planned, and the quickest window within a budget."""

from gradacc_lessons.quiz.examine_parts import FAULTS, LONGEST_TEXT
from gradacc_lessons.quiz.exercise import Exercise, WrongAnswer
from gradacc_lessons.quiz.judge_choice import FORGETS_WHAT_STAYS, MISSES_TARGET, N_TOO_LARGE
from gradacc_lessons.quiz.judge_fit import (
    BUDGET_MEBIBYTES,
    FITS_WITHOUT,
    NO_TRIPLE,
    NOT_NEEDED,
    OVER_BUDGET,
    STILL_OVER,
    TARGET,
    PartsCheck,
    TripleCheck,
    run_and_judge,
)
from gradacc_lessons.text import Text

MODEL = """import torch
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


def setup_source(
    build: str = "Classifier()",
    loss: str = "F.cross_entropy(model(tokens), labels)",
    batch: str = _BATCH.format(length=LONGEST_TEXT),
    first: str = "",
    returned: str = "build_model, loss_fn, make_batch",
) -> str:
    """The solution, with some of its pieces replaced."""
    return (
        f"{MODEL}def setup():\n{first}    def build_model():\n        return {build}\n\n"
        f"    def loss_fn(model, batch):\n{_LOSS.format(loss=loss)}"
        f"    def make_batch(size):\n        return {batch}\n\n    return {returned}\n"
    )


def _wrong_setup(fault: str, **pieces: str) -> WrongAnswer:
    return WrongAnswer(setup_source(**pieces), fault, FAULTS[fault].words)


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
    starter=MODEL + 'def setup():\n    """What `plan` asks for: build_model, loss_fn and make_batch."""\n'
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
    solution=setup_source(),
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
        _wrong_setup("other_loss", loss="F.cross_entropy(model(tokens), labels, label_smoothing=0.5)"),
    ),
    judge=PartsCheck(),
)


def _choice(returned: str, fault: str, message: Text) -> WrongAnswer:
    return WrongAnswer(f"def choose():\n    {returned}\n", fault, message)


CHOOSE_WITH_CHECKPOINTING = Exercise(
    key="choose_with_checkpointing",
    function="choose",
    statement=Text(
        f"Write `choose()`: it returns b, N and whether to checkpoint (True or False), for the quickest update of "
        f"{TARGET} examples in equal micro-batches that fits in {BUDGET_MEBIBYTES} MiB. The model is the lesson's, "
        "with AdamW and T = 128. The rule here: what counts as time is what is computed, and of two windows that "
        "compute the same, the one with fewer micro-batches is quicker. Your window's peak is measured.",
        f"Schrijf `choose()`: geef b, N en True of False voor checkpointing terug, voor de snelste update van {TARGET} "
        f"voorbeelden in gelijke micro-batches die in {BUDGET_MEBIBYTES} MiB past. Het model is dat van de les, met "
        "AdamW en T = 128. De regel hier: de tijd is wat er berekend wordt, en van twee vensters die evenveel "
        "berekenen is dat met de minste micro-batches het snelst. De piek van je venster wordt gemeten.",
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
        _choice("return 9, 10, True", "checkpointing_for_nothing", FITS_WITHOUT),
        _choice("return 45, 2, True", "checkpointed_and_over", STILL_OVER),
        _choice("b = 12\n    return b, 90 // b, False", "misses_target", MISSES_TARGET),
        _choice("return 5, 18, False", "n_too_large", N_TOO_LARGE),
        _choice("return 10, 9", "no_triple", NO_TRIPLE),
    ),
    judge=TripleCheck(run_and_judge),
)

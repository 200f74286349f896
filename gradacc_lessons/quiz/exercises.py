"""The exercises of the course. Beside each stand wrong answers that must fail, with what they must be told."""

from gradacc_lessons.quiz.exercise import Exercise, Group, LoopCheck, ValueCheck, WrongAnswer
from gradacc_lessons.quiz.exercises_buffer import FLOAT32_SUM
from gradacc_lessons.quiz.exercises_dice import DICE_PER_CLASS
from gradacc_lessons.quiz.exercises_fit import CHOOSE_WITH_CHECKPOINTING, PLAN_YOUR_OWN
from gradacc_lessons.quiz.exercises_memory import CHOOSE_FOR_BUDGET, FIND_LEAK
from gradacc_lessons.quiz.exercises_museum import TWO_BUGS, WRITE_THE_TEST
from gradacc_lessons.quiz.exercises_norm import CHOOSE_NORM, CORRECTED_MOMENTUM
from gradacc_lessons.quiz.exercises_once import ONCE_PER_WINDOW, READ_TIMELINE
from gradacc_lessons.quiz.exercises_precision import REPAIR_FP16
from gradacc_lessons.quiz.exercises_sum import EMBED_IN_TWO_PASSES
from gradacc_lessons.quiz.exercises_uneven import FIX_TAIL, TOKEN_WEIGHTS
from gradacc_lessons.text import Text

_UPDATES = "def updates_per_epoch(examples, micro_batch_size, accumulation_steps):\n"


def _updates_wrong(body: str, fault: str, en: str, nl: str) -> WrongAnswer:
    return WrongAnswer(_UPDATES + body, fault, Text(en, nl))


UPDATES_PER_EPOCH = Exercise(
    key="updates_per_epoch",
    function="updates_per_epoch",
    statement=Text(
        "Write `updates_per_epoch(examples, micro_batch_size, accumulation_steps)`: how many optimizer updates one "
        "pass over the data makes. The last micro-batch may be smaller, and the last window may be short; both count.",
        "Schrijf `updates_per_epoch(examples, micro_batch_size, accumulation_steps)`: hoeveel updates van de optimizer "
        "één keer door de data maakt. De laatste micro-batch mag kleiner zijn en het laatste venster mag korter zijn; "
        "allebei tellen ze mee.",
    ),
    starter=_UPDATES
    + '    """How many optimizer updates one pass over the data makes."""\n    raise NotImplementedError\n',
    hints=(
        Text(
            "Go in two divisions: first how many micro-batches, then how many windows.",
            "Doe het in twee delingen: eerst hoeveel micro-batches, dan hoeveel vensters.",
        ),
        Text(
            "What is left over still makes one more, so each division rounds up: `math.ceil`.",
            "Wat overblijft levert er nog één op, dus elke deling rondt naar boven af: `math.ceil`.",
        ),
    ),
    solution="import math\n\n\n"
    + _UPDATES
    + "    micro_batches = math.ceil(examples / micro_batch_size)\n"
    + "    return math.ceil(micro_batches / accumulation_steps)\n",
    wrong=(
        _updates_wrong(
            "    return examples // (micro_batch_size * accumulation_steps)\n",
            "rounds_down",
            "You count full windows only. What is left at the end makes an update too.",
            "Je telt alleen volle vensters. Wat er aan het eind overblijft, maakt ook een update.",
        ),
        _updates_wrong(
            "    micro_batches = -(-examples // micro_batch_size)\n    return micro_batches // accumulation_steps\n",
            "short_window_dropped",
            "Your micro-batches are right, but a short last window is dropped. It makes an update too.",
            "Je micro-batches kloppen, maar een kort laatste venster valt weg. Dat maakt ook een update.",
        ),
        _updates_wrong(
            "    return examples / (micro_batch_size * accumulation_steps)\n",
            "not_whole",
            "Your function returns fractions of updates. An update happens or it does not.",
            "Je functie geeft breuken van updates terug. Een update gebeurt of gebeurt niet.",
        ),
        _updates_wrong(
            "    return examples // (micro_batch_size * accumulation_steps) + 1\n",
            "always_one_more",
            "You add an update even if nothing is left over.",
            "Je telt er ook een update bij als er niets overblijft.",
        ),
        _updates_wrong(
            "    return round(examples / (micro_batch_size * accumulation_steps))\n",
            "rounds_to_nearest",
            "You round to the nearest whole number, so a window with little in it is lost.",
            "Je rondt af naar het dichtstbijzijnde hele getal, dus een venster waar weinig in zit gaat verloren.",
        ),
        _updates_wrong(
            "    return -(-examples // micro_batch_size)\n",
            "counts_micro_batches",
            "You count micro-batches. One update needs `accumulation_steps` of them.",
            "Je telt micro-batches. Voor één update zijn er `accumulation_steps` nodig.",
        ),
        _updates_wrong(
            "    return -(-examples // accumulation_steps)\n",
            "forgets_micro_batch_size",
            "You never divide by the micro-batch size.",
            "Je deelt nergens door de grootte van de micro-batch.",
        ),
        _updates_wrong(
            "    return examples * micro_batch_size * accumulation_steps\n",
            "multiplies",
            "You multiply. A larger micro-batch or a larger N makes fewer updates, not more.",
            "Je vermenigvuldigt. Een grotere micro-batch of een grotere N geeft minder updates, niet meer.",
        ),
    ),
    judge=ValueCheck(
        (
            Group(
                Text("data that fill every window exactly", "data die elk venster precies vullen"),
                ((1536, 8, 4), (1024, 16, 2), (960, 4, 8), (600, 10, 1)),
            ),
            Group(
                Text("a last window with fewer micro-batches", "een laatste venster met minder micro-batches"),
                ((1000, 8, 4), (1544, 8, 4), (1100, 10, 3)),
            ),
            Group(
                Text("a last micro-batch with fewer examples", "een laatste micro-batch met minder voorbeelden"),
                ((1797, 8, 4), (1537, 8, 4), (999, 7, 5), (1797, 32, 1)),
            ),
        )
    ),
)

_SIGNATURE = "def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):\n"
_ZERO = "    optimizer.zero_grad()\n"
_LOOP = "    for index, batch in enumerate(micro_batches):\n"
_UPDATE = "            optimizer.step()\n            optimizer.zero_grad()\n"
_AT_END = "        if (index + 1) % accumulation_steps == 0:\n" + _UPDATE
_BACKWARD = "        loss = {loss}\n        loss.backward()\n"


def _loop(loss: str = "loss_fn(model, batch) / accumulation_steps", end: str = _AT_END) -> str:
    return _SIGNATURE + _ZERO + _LOOP + _BACKWARD.format(loss=loss) + end


_RIGHT = _loop()
_MISSING_SCALE = WrongAnswer(_loop("loss_fn(model, batch)"), "missing_scale")
_DOUBLE_SCALE = WrongAnswer(_loop("loss_fn(model, batch) / accumulation_steps / accumulation_steps"), "double_scale")
_RUNNING_SCALE = WrongAnswer(_loop("loss_fn(model, batch) / (index % accumulation_steps + 1)"), "running_scale")
_STEP_EVERY_MICRO_BATCH = WrongAnswer(
    _loop(
        end="        optimizer.step()\n"
        "        if (index + 1) % accumulation_steps == 0:\n            optimizer.zero_grad()\n"
    ),
    "step_every_micro_batch",
)
_NO_ACCUMULATION = WrongAnswer(
    _loop("loss_fn(model, batch)", "        optimizer.step()\n        optimizer.zero_grad()\n"), "no_accumulation"
)
_NEVER_ZERO_GRAD = WrongAnswer(
    _SIGNATURE
    + _LOOP
    + _BACKWARD.format(loss="loss_fn(model, batch) / accumulation_steps")
    + "        if (index + 1) % accumulation_steps == 0:\n            optimizer.step()\n",
    "never_zero_grad",
)
_ZERO_GRAD_EVERY_MICRO_BATCH = WrongAnswer(
    _SIGNATURE
    + _LOOP
    + "        optimizer.zero_grad()\n"
    + _BACKWARD.format(loss="loss_fn(model, batch) / accumulation_steps")
    + "        if (index + 1) % accumulation_steps == 0:\n            optimizer.step()\n",
    "zero_grad_every_micro_batch",
)
_WINDOW_OFF_BY_ONE = WrongAnswer(
    _SIGNATURE
    + _LOOP
    + _BACKWARD.format(loss="loss_fn(model, batch) / accumulation_steps")
    + "        if index % accumulation_steps == 0:\n"
    + _UPDATE,
    "window_off_by_one",
)
_SUM_THEN_BACKWARD = WrongAnswer(
    _SIGNATURE
    + "    optimizer.zero_grad()\n    total = 0.0\n"
    + _LOOP
    + "        total = total + loss_fn(model, batch) / accumulation_steps\n"
    + "        if (index + 1) % accumulation_steps == 0:\n            total.backward()\n            optimizer.step()\n"
    + "            optimizer.zero_grad()\n            total = 0.0\n",
    "sum_then_backward",
)

TRAIN_EPOCH_WINDOWS = Exercise(
    key="train_epoch_windows",
    function="train_epoch",
    statement=Text(
        "Write `train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps)`: go once over the list of "
        "micro-batches and make one update per window of `accumulation_steps` micro-batches, with the gradient of the "
        "window's mean loss. `loss_fn(model, batch)` gives a micro-batch's mean loss. Here every window is full and "
        "every micro-batch has the same size.",
        "Schrijf `train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps)`: ga één keer door de "
        "lijst met micro-batches en maak één update per venster van `accumulation_steps` micro-batches, met de "
        "gradient van de gemiddelde loss van het venster. `loss_fn(model, batch)` geeft de gemiddelde loss van een "
        "micro-batch. Hier is elk venster vol en heeft elke micro-batch dezelfde grootte.",
    ),
    starter=_SIGNATURE + '    """One pass over the micro-batches: one update per window."""\n'
    "    # loss = loss_fn(model, batch) is the mean loss of one batch of micro_batches\n"
    "    raise NotImplementedError\n",
    hints=(
        Text(
            "Three things happen for every micro-batch or once per window. Which are which: backward, the update, "
            "zero_grad?",
            "Drie dingen gebeuren bij elke micro-batch of één keer per venster. Welke horen waar: backward, de update, "
            "zero_grad?",
        ),
        Text(
            "`.backward()` adds to `.grad`. What must each mean loss be divided by, so that the sum is again a mean?",
            "`.backward()` telt op bij `.grad`. Waardoor moet je elke gemiddelde loss delen, zodat de som weer een "
            "gemiddelde is?",
        ),
        Text(
            "Count with `enumerate`: the window is full when `(index + 1) % accumulation_steps == 0`.",
            "Tel met `enumerate`: het venster is vol als `(index + 1) % accumulation_steps == 0`.",
        ),
    ),
    solution=_RIGHT,
    wrong=(
        _MISSING_SCALE,
        _DOUBLE_SCALE,
        _RUNNING_SCALE,
        _STEP_EVERY_MICRO_BATCH,
        _NO_ACCUMULATION,
        _NEVER_ZERO_GRAD,
        _ZERO_GRAD_EVERY_MICRO_BATCH,
        _WINDOW_OFF_BY_ONE,
        _SUM_THEN_BACKWARD,
    ),
    judge=LoopCheck("windows"),
)

REPAIR_SCALE = Exercise(
    key="repair_scale",
    function="train_epoch",
    statement=Text(
        "This loop trains, and its loss goes down. Still its gradient is not that of the window's mean loss. Repair "
        "it. Every window is full and every micro-batch has the same size.",
        "Deze lus traint en de loss daalt. Toch is de gradient niet die van de gemiddelde loss van het venster. "
        "Repareer hem. Elk venster is vol en elke micro-batch heeft dezelfde grootte.",
    ),
    starter=_RUNNING_SCALE.source,
    hints=(
        Text(
            "Write down the divisor of each micro-batch in a window of four.",
            "Schrijf voor een venster van vier op waardoor elke micro-batch gedeeld wordt.",
        ),
        Text(
            "In a mean over the window, does the first micro-batch weigh more than the last?",
            "Weegt in een gemiddelde over het venster de eerste micro-batch zwaarder dan de laatste?",
        ),
    ),
    solution=_RIGHT,
    wrong=(
        WrongAnswer(_loop("loss_fn(model, batch) / (1 + index % accumulation_steps)"), "running_scale"),
        _MISSING_SCALE,
        _DOUBLE_SCALE,
        _STEP_EVERY_MICRO_BATCH,
    ),
    judge=LoopCheck("windows"),
)

EXERCISES: dict[str, Exercise] = {
    exercise.key: exercise
    for exercise in (
        *(UPDATES_PER_EPOCH, TRAIN_EPOCH_WINDOWS, REPAIR_SCALE, FIND_LEAK, CHOOSE_FOR_BUDGET),
        *(FIX_TAIL, TOKEN_WEIGHTS),
        *(CORRECTED_MOMENTUM, CHOOSE_NORM),
        *(EMBED_IN_TWO_PASSES, DICE_PER_CLASS),
        *(ONCE_PER_WINDOW, READ_TIMELINE),
        *(REPAIR_FP16, FLOAT32_SUM),
        *(TWO_BUGS, WRITE_THE_TEST),
        *(PLAN_YOUR_OWN, CHOOSE_WITH_CHECKPOINTING),
    )
}
"""Every exercise, by the key that the banks use."""


def exercise(key: str) -> Exercise:
    """The exercise with this key; ValueError lists those there are."""
    if key not in EXERCISES:
        raise ValueError(f"there is no exercise {key!r}; the exercises are {', '.join(EXERCISES)}")
    return EXERCISES[key]

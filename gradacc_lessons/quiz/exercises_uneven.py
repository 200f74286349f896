"""The exercises of lesson 04: a loop whose last window is lost, and a loop that weighs by what counts."""

from gradacc_lessons.quiz.exercise import Exercise, LoopCheck, WrongAnswer
from gradacc_lessons.text import Text

_SIGNATURE = "def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):\n"
_ZERO = "    optimizer.zero_grad()\n"
_FOR = "    for index, batch in enumerate(micro_batches):\n"
_BACKWARD = "        loss = loss_fn(model, batch) / {divisor}\n        loss.backward()\n"
_UPDATE = "            optimizer.step()\n            optimizer.zero_grad()\n"
_FULL = "        if (index + 1) % accumulation_steps == 0:\n" + _UPDATE
_BY_N = _BACKWARD.format(divisor="accumulation_steps")
_WINDOWS = (
    "    for start in range(0, len(micro_batches), accumulation_steps):\n"
    "        window = micro_batches[start : start + accumulation_steps]\n"
)
_IN_WINDOW = (
    "        optimizer.zero_grad()\n        for batch in window:\n"
    "            loss = {loss}\n            loss.backward()\n        optimizer.step()\n"
)

FIX_TAIL = Exercise(
    key="fix_tail",
    function="train_epoch",
    statement=Text(
        "This is the loop of lesson 01. It is right as long as every window is full. Now the epoch may end with a "
        "short window. Repair the loop, so that the short window makes an update too, with the gradient of its own "
        "mean loss. All micro-batches have the same size.",
        "Dit is de lus van les 01. Die klopt zolang elk venster vol is. Nu kan de epoch met een kort venster "
        "eindigen. Repareer de lus, zodat ook het korte venster een update maakt, met de gradient van zijn eigen "
        "gemiddelde loss. Alle micro-batches zijn even groot.",
    ),
    starter=_SIGNATURE + _ZERO + _FOR + _BY_N + _FULL,
    hints=(
        Text(
            "Take 10 micro-batches and N = 4. What should the divisor be for the first eight, and what for the last "
            "two?",
            "Neem 10 micro-batches en N = 4. Wat moet de deler zijn voor de eerste acht, en wat voor de laatste twee?",
        ),
        Text(
            "You need that divisor before the first backward of the window. Can you know by then how long it is?",
            "Je hebt die deler nodig vóór de eerste backward van het venster. Kun je dan al weten hoe lang het is?",
        ),
        Text(
            "A slice of a list that reaches past its end is simply shorter. Go through the epoch window by window.",
            "Een stuk van een lijst dat voorbij het eind reikt, is gewoon korter. Ga venster voor venster door de "
            "epoch.",
        ),
    ),
    solution=_SIGNATURE + _WINDOWS + _IN_WINDOW.format(loss="loss_fn(model, batch) / len(window)"),
    wrong=(
        WrongAnswer(
            _SIGNATURE
            + _WINDOWS
            + "        if len(window) < accumulation_steps:\n            break\n"
            + _IN_WINDOW.format(loss="loss_fn(model, batch) / len(window)"),
            "tail_dropped",
        ),
        WrongAnswer(_SIGNATURE + _FOR + _BY_N + _FULL, "tail_leaks"),
        WrongAnswer(
            _SIGNATURE
            + _ZERO
            + _FOR
            + _BY_N
            + "        if (index + 1) % accumulation_steps == 0 or index + 1 == len(micro_batches):\n"
            + _UPDATE,
            "tail_underscaled",
        ),
        WrongAnswer(
            _SIGNATURE
            + "    full = len(micro_batches) - len(micro_batches) % accumulation_steps\n"
            + _ZERO
            + "    for index, batch in enumerate(micro_batches[:full]):\n"
            + _BY_N
            + _FULL
            + "    for batch in micro_batches[full:]:\n        loss_fn(model, batch).backward()\n"
            + "    if full < len(micro_batches):\n        optimizer.step()\n",
            "tail_unscaled",
        ),
        WrongAnswer(_SIGNATURE + _WINDOWS + _IN_WINDOW.format(loss="loss_fn(model, batch)"), "missing_scale"),
        WrongAnswer(
            _SIGNATURE + _WINDOWS + _IN_WINDOW.format(loss="loss_fn(model, batch) / len(micro_batches)"),
            "divided_by_epoch_length",
        ),
    ),
    judge=LoopCheck("tail"),
)

_WITH_COUNT = "def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps, count):\n"
_ITEMS = "        items = sum(count(batch) for batch in window)\n"


def _weighted(loss: str, before: str = "") -> str:
    return _WITH_COUNT + _WINDOWS + before + _IN_WINDOW.format(loss=loss)


TOKEN_WEIGHTS = Exercise(
    key="token_weights",
    function="train_epoch",
    statement=Text(
        "Write the loop for micro-batches that hold different numbers of tokens. `loss_fn(model, batch)` is the mean "
        "over the tokens of a micro-batch that count, and `count(batch)` says how many those are. Each update uses the "
        "gradient of the mean over all tokens of its window that count; the last window may be short. Every "
        "micro-batch has at least one token that counts.",
        "Schrijf de lus voor micro-batches met verschillende aantallen tokens. `loss_fn(model, batch)` is het "
        "gemiddelde over de tokens van een micro-batch die meetellen, en `count(batch)` zegt hoeveel dat er zijn. Elke "
        "update gebruikt de gradient van het gemiddelde over alle tokens in zijn venster die meetellen; het laatste "
        "venster kan kort zijn. Elke micro-batch heeft minstens één token dat meetelt.",
    ),
    starter=_WITH_COUNT + '    """One pass: each update uses the mean over its window\'s tokens."""\n'
    "    # count(batch) is how many tokens the mean loss_fn(model, batch) runs over\n"
    "    raise NotImplementedError\n",
    hints=(
        Text(
            "How do you get the sum of a micro-batch's losses back from its mean?",
            "Hoe krijg je uit het gemiddelde van een micro-batch de som van zijn losses terug?",
        ),
        Text(
            "The sums of a window, added up, are divided by one number. Which one, and when do you know it?",
            "De sommen van een venster worden samen door één getal gedeeld. Welk getal is dat, en wanneer weet je het?",
        ),
        Text(
            "Take the window as a list. Go through it twice: first to count, then to run.",
            "Neem het venster als lijst. Ga er twee keer doorheen: eerst om te tellen, dan om te draaien.",
        ),
    ),
    solution=_weighted("loss_fn(model, batch) * count(batch) / items", _ITEMS),
    wrong=(
        WrongAnswer(_weighted("loss_fn(model, batch) / len(window)"), "mean_of_means"),
        WrongAnswer(
            _weighted(
                "loss_fn(model, batch) * len(batch[0]) / examples",
                "        examples = sum(len(batch[0]) for batch in window)\n",
            ),
            "examples_not_items",
        ),
        WrongAnswer(_weighted("loss_fn(model, batch) * count(batch)"), "sum_never_divided"),
        WrongAnswer(_weighted("loss_fn(model, batch)"), "missing_scale"),
        WrongAnswer(
            _WITH_COUNT
            + "    items = sum(count(batch) for batch in micro_batches)\n"
            + _WINDOWS
            + _IN_WINDOW.format(loss="loss_fn(model, batch) * count(batch) / items"),
            "divided_by_epoch_length",
        ),
        WrongAnswer(
            _WITH_COUNT
            + _WINDOWS
            + "        if len(window) < accumulation_steps:\n            break\n"
            + _ITEMS
            + _IN_WINDOW.format(loss="loss_fn(model, batch) * count(batch) / items"),
            "tail_dropped",
        ),
        WrongAnswer(
            _weighted("loss_fn(model, batch) / items", _ITEMS),
            "divided_by_examples_again",
            Text(
                "loss_fn gives a mean already, and the loop divides it by a number of tokens or examples once more. "
                "The gradient is too short, and shorter the more there are. Only a sum may be divided by what it runs "
                "over.",
                "loss_fn geeft al een gemiddelde, en de lus deelt dat nog eens door een aantal tokens of voorbeelden. "
                "De gradient is te kort, en korter naarmate het er meer zijn. Alleen een som mag je delen door het "
                "aantal waarover hij loopt.",
            ),
        ),
        WrongAnswer(
            _weighted("loss_fn(model, batch) / count(batch)"),
            "divided_by_micro_batch_size",
            Text(
                "Each loss is divided by what is in its own micro-batch, and it is a mean over that already. So a "
                "micro-batch with more tokens weighs less. How should its weight grow with its tokens, and what should "
                "the weights of a window add up to?",
                "Elke loss wordt gedeeld door wat er in zijn eigen micro-batch zit, terwijl het daar al een gemiddelde "
                "over is. Zo weegt een micro-batch met meer tokens lichter. Hoe moet zijn gewicht groeien met zijn "
                "tokens, en waar moeten de gewichten van een venster samen op uitkomen?",
            ),
        ),
        WrongAnswer(
            _WITH_COUNT
            + _WINDOWS
            + "        optimizer.zero_grad()\n        seen = 0\n        for batch in window:\n"
            + "            seen += count(batch)\n"
            + "            (loss_fn(model, batch) * count(batch) / seen).backward()\n        optimizer.step()\n",
            "running_scale",
            Text(
                "The divisor is a count that still grows inside the window: of what has been seen so far. The early "
                "micro-batches weigh too much. A divisor that changes inside a window gives no mean over it.",
                "De deler is een teller die binnen het venster nog groeit: wat er tot dan toe gezien is. De vroege "
                "micro-batches wegen te zwaar. Een deler die binnen een venster verandert, geeft er geen gemiddelde "
                "over.",
            ),
        ),
    ),
    judge=LoopCheck("items"),
)

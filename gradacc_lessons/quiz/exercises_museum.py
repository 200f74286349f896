"""The exercises of lesson 09: a loop with the bugs of two projects, and the test that would have found such bugs."""

from gradacc_lessons.quiz.exercise import Exercise, LoopCheck, WrongAnswer
from gradacc_lessons.quiz.judge_museum import TestCheck
from gradacc_lessons.text import Text

_SIGNATURE = "def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps):\n"
_FOR = "    for index, batch in enumerate(micro_batches):\n"
_ZERO, _ZERO_AFTER = "        optimizer.zero_grad()\n", "            optimizer.zero_grad()\n"
_SIZE = (
    "        start = index - index % accumulation_steps\n"
    "        size = min(accumulation_steps, len(micro_batches) - start)\n"
)
_LAST = "        last = index + 1 == len(micro_batches)\n"
_FULL = "        if (index + 1) % accumulation_steps == 0"
_END = f"{_FULL} or last:\n            optimizer.step()\n"


def _backward(divisor: str) -> str:
    return f"        loss = loss_fn(model, batch) / {divisor}\n        loss.backward()\n"


_BY_N, _BY_SIZE = _backward("accumulation_steps"), _SIZE + _backward("size")

TWO_BUGS = Exercise(
    key="two_bugs",
    function="train_epoch",
    statement=Text(
        "This loop is rebuilt from what two public threads describe, and it has the bug of each. Nothing crashes, and "
        "the loss goes down. Find both and repair them. All micro-batches have the same size, and the last window of "
        "the epoch may be short.",
        "Deze lus is nagebouwd naar wat twee openbare threads beschrijven, en heeft de fout uit elk van beide. Er "
        "crasht niets, en de loss daalt. Vind ze allebei en repareer ze. Alle micro-batches zijn even groot, en het "
        "laatste venster van de epoch kan kort zijn.",
    ),
    starter=_SIGNATURE + _FOR + _ZERO + _BY_N + _LAST + _END,
    hints=(
        Text(
            "Take N = 4 and write down, after each line of the first four rounds, which micro-batches are in `.grad`.",
            "Neem N = 4 en schrijf in de eerste vier rondes na elke regel op welke micro-batches er in `.grad` zitten.",
        ),
        Text(
            "That is one of them. For the other, take 10 micro-batches and look at the last two rounds.",
            "Dat is de ene. Neem voor de andere 10 micro-batches en kijk naar de laatste twee rondes.",
        ),
        Text(
            "How many micro-batches are in the window that this one belongs to? It follows from `index`, N and "
            "`len(micro_batches)`.",
            "Hoeveel micro-batches zitten er in het venster waar deze bij hoort? Dat volgt uit `index`, N en "
            "`len(micro_batches)`.",
        ),
    ),
    solution=_SIGNATURE + "    optimizer.zero_grad()\n" + _FOR + _BY_SIZE + _LAST + _END + _ZERO_AFTER,
    wrong=(
        WrongAnswer(_SIGNATURE + _FOR + _BY_N + _LAST + _END + _ZERO_AFTER, "tail_underscaled"),
        WrongAnswer(_SIGNATURE + _FOR + _ZERO + _BY_SIZE + _LAST + _END, "zero_grad_every_micro_batch"),
        WrongAnswer(
            _SIGNATURE + "    optimizer.zero_grad()\n" + _FOR + _BY_SIZE + _LAST + _END,
            "never_zero_grad",
        ),
        WrongAnswer(
            _SIGNATURE
            + _FOR
            + _BY_SIZE
            + _LAST
            + _END.replace(
                "            optimizer.step", "            optimizer.zero_grad()\n            optimizer.step"
            ),
            "zero_grad_before_step",
        ),
        WrongAnswer(
            _SIGNATURE
            + "    optimizer.zero_grad()\n"
            + _FOR
            + _BY_N
            + f"{_FULL}:\n            optimizer.step()\n"
            + _ZERO_AFTER,
            "tail_dropped",
        ),
        WrongAnswer(
            _SIGNATURE + _FOR + _backward("(index % accumulation_steps + 1)") + _LAST + _END + _ZERO_AFTER,
            "running_scale",
        ),
    ),
    judge=LoopCheck("tail"),
)

_TEST = "import torch\n\n\ndef holds(train_epoch):\n"
_TRACE = (
    "    model = torch.nn.Linear(1, 1, bias=False)\n"
    "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    "    applied = []\n"
    "    optimizer.register_step_pre_hook(lambda *_: applied.append(model.weight.grad.item()))\n"
    "    ones = [(torch.ones(2, 1),)] * {micro_batches}\n"
    "    for _ in range(2):\n"
    "        train_epoch(model, optimizer, ones, lambda model, batch: model(batch[0]).mean(), 4)\n"
)
_UNEQUAL = (
    "    torch.manual_seed(0)\n"
    "    model, right = (torch.nn.Linear(5, 1) for _ in range(2))\n"
    "    right.load_state_dict(model.state_dict())\n"
    "    batches = [(torch.randn(3, 5),) for _ in range({micro_batches})]\n"
    "    mean = lambda model, batch: model(batch[0]).square().mean()\n"
    "    train_epoch(model, torch.optim.{optimizer}(model.parameters(), lr=0.01), batches, mean, 4)\n"
    "    optimizer = torch.optim.{optimizer}(right.parameters(), lr=0.01)\n"
    "    for start in range(0, len(batches), 4):\n"
    "        optimizer.zero_grad()\n"
    "        mean(right, (torch.cat([batch[0] for batch in batches[start : start + 4]]),)).backward()\n"
    "        optimizer.step()\n"
)
_DIFFERENCE = "    difference = (model.weight - right.weight).abs().max()\n"


def _test(body: str, fault: str, en: str, nl: str) -> WrongAnswer:
    return WrongAnswer(_TEST + body, fault, Text(en, nl))


WRITE_THE_TEST = Exercise(
    key="write_the_test",
    function="holds",
    statement=Text(
        "Write a test that keeps such bugs out. `holds(train_epoch)` gets a loop, runs it on something small of your "
        "own, and returns True if its updates are right and False if not. Right means: one update for each "
        "window of N micro-batches, with the gradient of the mean over the window; a short last window is a window "
        "too. Your test must accept loops that are right, however they are written, and refuse those with a bug.",
        "Schrijf een test die zulke fouten buiten houdt. `holds(train_epoch)` krijgt een lus, draait die op iets "
        "kleins van jezelf, en geeft True terug als de updates kloppen en anders False. Kloppen betekent: één update "
        "per venster van N micro-batches, met de gradient van het gemiddelde over het venster; ook een kort laatste "
        "venster is een venster. Je test moet goede lussen goedkeuren, hoe ze ook geschreven zijn, en lussen met een "
        "fout afkeuren.",
    ),
    starter=_TEST
    + '    """Whether every update of this loop is right."""\n'
    + "    # run it: train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps)\n"
    + "    raise NotImplementedError\n",
    hints=(
        Text(
            "Choose a model, micro-batches and a loss for which you know what every update must apply.",
            "Kies een model, micro-batches en een loss waarbij je weet wat elke update moet toepassen.",
        ),
        Text(
            "Lesson 04 had a model with one weight, and micro-batches whose gradient is 1. What does a right loop "
            "apply there?",
            "In les 04 was er een model met één gewicht, en micro-batches waarvan de gradient 1 is. Wat past een goede "
            "lus daar toe?",
        ),
        Text(
            "`optimizer.register_step_pre_hook(f)` calls `f` just before each update: there you can keep the gradient. "
            "Choose a number of micro-batches that N does not divide.",
            "`optimizer.register_step_pre_hook(f)` roept `f` vlak voor elke update aan: daar kun je de gradient "
            "bewaren. Kies een aantal micro-batches dat niet door N deelbaar is.",
        ),
        Text(
            "Look at the number of updates and at the size of each, and compare sizes with a tolerance.",
            "Kijk naar het aantal updates en naar de grootte van elk, en vergelijk groottes met een tolerantie.",
        ),
    ),
    solution=_TEST
    + _TRACE.format(micro_batches=10)
    + "    return len(applied) == 6 and all(abs(gradient - 1) < 1e-4 for gradient in applied)\n",
    wrong=(
        _test(
            _UNEQUAL.format(micro_batches=10, optimizer="SGD") + "    print(model.weight - right.weight)\n",
            "no_verdict",
            "Your test does not answer with True or False for every loop. Is there a `return` on every way out?",
            "Je test antwoordt niet bij elke lus met True of False. Staat er op elke weg naar buiten een `return`?",
        ),
        _test(
            "    return train_epoch is None\n",
            "refuses_all",
            "Your test refuses every loop, the right ones too.",
            "Je test keurt elke lus af, ook de goede.",
        ),
        _test(
            _UNEQUAL.format(micro_batches=10, optimizer="SGD")
            + "    return bool((model.weight == right.weight).all())\n",
            "refuses_right",
            "Your test refuses a loop that is right. Two ways to take the same mean differ in the last digits, and a "
            "test that cries wolf is soon switched off.",
            "Je test keurt een goede lus af. Twee manieren om hetzelfde gemiddelde te nemen verschillen in de laatste "
            "cijfers, en een test die vals alarm slaat wordt snel uitgezet.",
        ),
        _test(
            "    model = torch.nn.Linear(1, 1, bias=False)\n"
            "    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)\n"
            "    ones = [(torch.ones(2, 1),)] * 10\n"
            "    before = model.weight.item()\n"
            "    train_epoch(model, optimizer, ones, lambda model, batch: model(batch[0]).mean(), 4)\n"
            "    return model.weight.item() < before\n",
            "accepts_all",
            "No bug is found. The loss goes down with each of these bugs, and with one micro-batch to a window most of "
            "them do nothing.",
            "Er wordt geen enkele fout gevonden. De loss daalt bij al deze fouten, en met één micro-batch per venster "
            "doen de meeste niets.",
        ),
        _test(
            _TRACE.format(micro_batches=10) + "    return len(applied) == 6\n",
            "counts_only",
            "Your test sees how many updates there are, and not what they apply.",
            "Je test ziet hoeveel updates er zijn, en niet wat ze toepassen.",
        ),
        _test(
            _UNEQUAL.format(micro_batches=8, optimizer="Adam") + _DIFFERENCE + "    return bool(difference < 1e-3)\n",
            "length_unseen",
            "A gradient that is several times too long or too short passes. Which optimizers do not care, and how "
            "large is your tolerance beside what you measure?",
            "Een gradient die een paar keer te lang of te kort is komt erdoor. Welke optimizers maakt dat niets uit, "
            "en hoe groot is je tolerantie naast wat je meet?",
        ),
        _test(
            _UNEQUAL.format(micro_batches=8, optimizer="SGD") + _DIFFERENCE + "    return bool(difference < 1e-5)\n",
            "only_full_windows",
            "Your test finds what is wrong in full windows, and never meets another one.",
            "Je test vindt wat er in volle vensters mis is, en komt nooit een ander venster tegen.",
        ),
        _test(
            _TRACE.format(micro_batches=10)
            + "    return len(applied) == 6 and all(abs(gradient - 1) < 1e-4 for gradient in applied[:2])\n",
            "size_of_the_last",
            "All but one are found. Your test knows that the last window makes an update, and not how large it is.",
            "Op één na worden ze allemaal gevonden. Je test weet dat het laatste venster een update maakt, en niet hoe "
            "groot die is.",
        ),
    ),
    judge=TestCheck(),
)

"""The exercises of lesson 07: a loop in which everything happens too often, and a timeline to read."""

from gradacc_lessons.detective.faults import FAULTS
from gradacc_lessons.quiz.exercise import Exercise, Group, WrongAnswer
from gradacc_lessons.quiz.judge_once import StagedCheck
from gradacc_lessons.quiz.try_once import AVERAGE, CLIP, SCHEDULE, TAIL, WINDOWS, read_timeline, whole_loop
from gradacc_lessons.text import Text

_LOOP = (
    "from torch.nn.utils import clip_grad_norm_\n\n\n"
    "def train_epoch(model, optimizer, micro_batches, loss_fn, accumulation_steps, max_norm, scheduler, ema):\n"
)
_CUT = (
    "    for start in range(0, len(micro_batches), accumulation_steps):\n"
    "        window = micro_batches[start : start + accumulation_steps]\n"
)
_ZERO = "        optimizer.zero_grad()\n"
_BATCHES = "        for batch in window:\n"
_BACKWARD = "            loss = loss_fn(model, batch) / len(window)\n            loss.backward()\n"
_CLIP = "        clip_grad_norm_(model.parameters(), max_norm)\n"
_STEP = "        optimizer.step()\n"
_MOVE = "        scheduler.step()\n"
_EMA = "        ema.update()\n"


def _within(line: str) -> str:
    """The line at every micro-batch."""
    return "    " + line


def _after(line: str) -> str:
    """The line after the epoch."""
    return line.removeprefix("    ")


def _catalogued(fault: str, *lines: str) -> WrongAnswer:
    """A mistake of the detective's catalogue, with its message."""
    return WrongAnswer(_LOOP + "".join(lines), fault, FAULTS[fault].message)


def _own(fault: str, en: str, nl: str, *lines: str) -> WrongAnswer:
    return WrongAnswer(_LOOP + "".join(lines), fault, Text(en, nl))


_WINDOW = (_CUT, _ZERO, _BATCHES, _BACKWARD)
_END = (_CLIP, _STEP, _MOVE, _EMA)

ONCE_PER_WINDOW = Exercise(
    key="once_per_window",
    function="train_epoch",
    statement=Text(
        "In this loop nearly everything happens at every micro-batch. Repair it: for each window one clip to "
        "`max_norm`, one update, one move of `scheduler` and of `ema`, one zero_grad, each where it belongs. "
        "`ema.update()` moves an average towards the weights as they are. All micro-batches are equally large; the "
        "last window may be short, and is a window like the others.",
        "In deze lus gebeurt bijna alles bij elke micro-batch. Repareer hem: per venster één keer clippen op "
        "`max_norm`, één update, één verschuiving van `scheduler` en van `ema`, één zero_grad, elk op zijn plek. "
        "`ema.update()` schuift een gemiddelde op naar de gewichten zoals ze zijn. Alle micro-batches zijn even groot; "
        "het laatste venster kan kort zijn, en is een venster als alle andere.",
    ),
    starter=_LOOP
    + "    for index, batch in enumerate(micro_batches):\n"
    + _ZERO
    + "        loss = loss_fn(model, batch) / accumulation_steps\n        loss.backward()\n"
    + _CLIP
    + _MOVE
    + _EMA
    + "        if (index + 1) % accumulation_steps == 0:\n            optimizer.step()\n",
    hints=(
        Text(
            "Only two things belong to a micro-batch. Which two, and what does all the rest wait for?",
            "Er horen maar twee dingen bij een micro-batch. Welke twee, en waar wacht de rest op?",
        ),
        Text(
            "Clipping needs the complete gradient. The schedule and the average count updates. What comes before the "
            "update, and what after it?",
            "Voor het clippen moet de gradient compleet zijn. Het schema en het gemiddelde tellen updates. Wat komt er "
            "voor de update, en wat erna?",
        ),
        Text(
            "Go through the epoch window by window, as in lesson 04, with a short loop over the micro-batches inside. "
            "A short window is divided by its own length.",
            "Ga venster voor venster door de epoch, zoals in les 04, met een korte lus over de micro-batches erin. Een "
            "kort venster deel je door zijn eigen lengte.",
        ),
    ),
    solution=_LOOP + "".join((*_WINDOW, *_END)),
    wrong=(
        _catalogued("zero_grad_every_micro_batch", _CUT, _BATCHES, _within(_ZERO), _BACKWARD, *_END),
        _catalogued("never_zero_grad", _CUT, _BATCHES, _BACKWARD, *_END),
        _catalogued("zero_grad_before_step", _CUT, _BATCHES, _BACKWARD, _CLIP, _ZERO, _STEP, _MOVE, _EMA),
        _catalogued("step_every_micro_batch", *_WINDOW, _within(_CLIP), _within(_STEP), _MOVE, _EMA),
        _catalogued("missing_scale", *_WINDOW[:3], _BACKWARD.replace(" / len(window)", ""), *_END),
        _catalogued("clip_every_micro_batch", *_WINDOW, _within(_CLIP), _STEP, _MOVE, _EMA),
        _catalogued("clip_too_late", *_WINDOW, _STEP, _CLIP, _MOVE, _EMA),
        _catalogued("scheduler_every_micro_batch", *_WINDOW, _within(_MOVE), _CLIP, _STEP, _EMA),
        _catalogued("scheduler_before_update", *_WINDOW, _CLIP, _MOVE, _STEP, _EMA),
        _catalogued("scheduler_once_per_epoch", *_WINDOW, _CLIP, _STEP, _EMA, _after(_MOVE)),
        _catalogued("scheduler_never", *_WINDOW, _CLIP, _STEP, _EMA),
        _own(
            "ema_every_micro_batch",
            "The average moves at every micro-batch, while the weights change once per window. It forgets as many "
            "times too fast as a window has micro-batches.",
            "Het gemiddelde schuift bij elke micro-batch op, terwijl de gewichten één keer per venster veranderen. Het "
            "vergeet zoveel keer te snel als een venster micro-batches heeft.",
            *_WINDOW, _within(_EMA), _CLIP, _STEP, _MOVE,
        ),
        _own(
            "ema_before_update",
            "The average moves before the update, so it takes in the weights of the window before, and never those of "
            "the last.",
            "Het gemiddelde schuift op voor de update, dus het neemt de gewichten van het vorige venster op, en die "
            "van het laatste nooit.",
            *_WINDOW, _CLIP, _EMA, _STEP, _MOVE,
        ),
        _own(
            "ema_once_per_epoch",
            "The average moves once per epoch. Of all the weights in between it sees nothing.",
            "Het gemiddelde schuift één keer per epoch op. Van alle gewichten daartussen ziet het niets.",
            *_WINDOW, _CLIP, _STEP, _MOVE, _after(_EMA),
        ),
        _own(
            "ema_never",
            "The average never moves: it still is the model as it was before training.",
            "Het gemiddelde schuift nooit op: het is nog het model van voor de training.",
            *_WINDOW, _CLIP, _STEP, _MOVE,
        ),
        _catalogued(
            "tail_dropped",
            _CUT,
            "        if len(window) < accumulation_steps:\n            break\n",
            *_WINDOW[1:], *_END,
        ),
        _catalogued(
            "tail_leaks",
            "    for index, batch in enumerate(micro_batches):\n"
            "        (loss_fn(model, batch) / accumulation_steps).backward()\n"
            "        if (index + 1) % accumulation_steps == 0:\n",
            *map(_within, (_CLIP, _STEP, _MOVE, _EMA, _ZERO)),
        ),
        _catalogued("tail_underscaled", *_WINDOW[:3], _BACKWARD.replace("len(window)", "accumulation_steps"), *_END),
    ),
    judge=StagedCheck(
        whole_loop,
        (
            Group(
                Text("the updates of full windows, without clipping", "de updates van volle vensters, zonder clippen"),
                ((WINDOWS,),),
            ),
            Group(Text("the same with clipping", "hetzelfde met clippen"), ((CLIP,),)),
            Group(
                Text("the learning rate of each update", "de learning rate van elke update"),
                ((SCHEDULE,),),
            ),
            Group(Text("the average of the weights", "het gemiddelde van de gewichten"), ((AVERAGE,),)),
            Group(Text("an epoch with a short last window", "een epoch met een kort laatste venster"), ((TAIL,),)),
        ),
    ),
)  # fmt: skip

_READ = "def applied(events):\n"
_COUNT = "    held, found = 0, []\n    for event in events:\n"
_ADD = '        if event == "backward":\n            held += 1\n'
_APPLY = '        if event == "update":\n            found.append(held)\n'
_EMPTY = '        if event == "zero_grad":\n            held = 0\n'
_RETURN = "    return found\n"


def _reads(fault: str, en: str, nl: str, *lines: str) -> WrongAnswer:
    return WrongAnswer(_READ + "".join(lines), fault, Text(en, nl))


READ_TIMELINE = Exercise(
    key="read_timeline",
    function="applied",
    statement=Text(
        "Read a timeline. `events` is a list of what a loop did, in order: `forward`, `backward`, `clip`, `update`, "
        "`schedule`, `zero_grad`, and `evaluation` for a forward without a graph. Return a list with a number for each "
        "update: how many backwards are in the gradient that it applies, old ones included.",
        "Lees een tijdlijn. `events` is een lijst van wat een lus deed, op volgorde: `forward`, `backward`, `clip`, "
        "`update`, `schedule`, `zero_grad`, en `evaluation` voor een forward zonder graaf. Geef een lijst terug met "
        "één getal per update: hoeveel backwards er in de gradient zitten die hij toepast, oude meegerekend.",
    ),
    starter=_READ + '    """How many backwards are in the gradient of each update."""\n    raise NotImplementedError\n',
    hints=(
        Text(
            "Follow `.grad` with a finger: which events put something into it, and which event takes it out?",
            "Volg `.grad` met je vinger: welke gebeurtenissen doen er iets in, en welke haalt het eruit?",
        ),
        Text(
            "Keep one number: how many backwards are in `.grad` now. Three kinds of events matter.",
            "Houd één getal bij: hoeveel backwards er nu in `.grad` zitten. Drie soorten gebeurtenissen doen ertoe.",
        ),
        Text(
            "What does `optimizer.step()` do to `.grad`? Try it in a cell if you are not sure.",
            "Wat doet `optimizer.step()` met `.grad`? Probeer het in een cel als je het niet zeker weet.",
        ),
    ),
    solution=_READ + _COUNT + _ADD + _APPLY + _EMPTY + _RETURN,
    wrong=(
        _reads(
            "update_empties",
            "You count from one update to the next. An update leaves `.grad` as it is; look for the event that empties "
            "it.",
            "Je telt van de ene update tot de volgende. Een update laat `.grad` zoals het is; zoek de gebeurtenis die "
            "het leegmaakt.",
            _COUNT, _ADD, _APPLY + "            held = 0\n", _RETURN,
        ),
        _reads(
            "both_empty",
            "You begin to count anew at an update as well. If nothing is zeroed after it, the old gradient is still "
            "there and is applied again.",
            "Je begint ook bij een update opnieuw te tellen. Als er daarna niets op nul wordt gezet, staat de oude "
            "gradient er nog en wordt hij nog een keer toegepast.",
            _COUNT, _ADD, _APPLY + "            held = 0\n", _EMPTY, _RETURN,
        ),
        _reads(
            "nothing_empties",
            "Your count only grows. Does nothing in the timeline empty `.grad`?",
            "Je telling groeit alleen maar. Is er niets in de tijdlijn dat `.grad` leegmaakt?",
            _COUNT, _ADD, _APPLY, _RETURN,
        ),
        _reads(
            "counts_forwards",
            "You count forwards. A forward adds nothing to `.grad`, and not every forward goes backward.",
            "Je telt forwards. Een forward telt niets bij `.grad` op, en niet elke forward gaat backward.",
            _COUNT, _ADD.replace("backward", "forward"), _APPLY, _EMPTY, _RETURN,
        ),
        _reads(
            "counts_what_is_left",
            "Your list is one too long where the timeline ends in mid-window: what no update applies gets no number.",
            "Je lijst is één te lang als de tijdlijn midden in een venster eindigt: wat geen update toepast, krijgt "
            "geen getal.",
            _COUNT, _ADD, _APPLY, _EMPTY, "    if held:\n        found.append(held)\n", _RETURN,
        ),
        _reads(
            "one_number",
            "Return a list, with a number for each update; your function returns something else.",
            "Geef een lijst terug, met een getal per update; je functie geeft iets anders terug.",
            '    return events.count("update")\n',
        ),
    ),
    judge=StagedCheck(
        read_timeline,
        (
            Group(Text("right loops", "juiste lussen"), ((0,), (1,))),
            Group(Text("a zero_grad inside a window", "een zero_grad midden in een venster"), ((2,), (3,))),
            Group(
                Text("updates with nothing zeroed between them", "updates waartussen niets op nul wordt gezet"),
                ((4,), (5,)),
            ),
            Group(
                Text(
                    "forwards that do not go backward, and an end in mid-window",
                    "forwards die niet backward gaan, en een eind midden in een venster",
                ),
                ((6,), (7,)),
            ),
        ),
    ),
)  # fmt: skip

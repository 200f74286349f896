"""The first exercise of lesson 08: a float16 loop that a GradScaler refuses."""

from gradacc_lessons.quiz.exercise import Exercise, Group, WrongAnswer
from gradacc_lessons.quiz.judge_sum import TrialCheck
from gradacc_lessons.quiz.try_precision import fp16_epoch
from gradacc_lessons.text import Text

_LOOP = (
    "from torch import autocast, float16\nfrom torch.nn.utils import clip_grad_norm_\n\n\n"
    "def train_epoch(model, optimizer, scaler, micro_batches, loss_fn, accumulation_steps, max_norm):\n"
    "    optimizer.zero_grad()\n    for index, batch in enumerate(micro_batches):\n"
)
_FORWARD = (
    '        with autocast("cpu", dtype=float16):\n            loss = loss_fn(model, batch) / accumulation_steps\n'
)
_BACKWARD = "        scaler.scale(loss).backward()\n"
_BEGIN = _LOOP + _FORWARD + _BACKWARD
_UNSCALE = "        scaler.unscale_(optimizer)\n"
_CLIP = "        clip_grad_norm_(model.parameters(), max_norm)\n"
_END = "        if (index + 1) % accumulation_steps == 0:\n"
_STEP = "            scaler.step(optimizer)\n"
_UPDATE = "            scaler.update()\n"
_ZERO = "            optimizer.zero_grad()\n"


def _in(lines: str) -> str:
    """The same lines, one level further in."""
    return "".join(f"    {line}\n" for line in lines.splitlines())


_ONCE = _END + _in(_UNSCALE) + _in(_CLIP)
_RIGHT = _BEGIN + _ONCE + _STEP + _UPDATE + _ZERO


def _fp16(source: str, fault: str, en: str, nl: str) -> WrongAnswer:
    return WrongAnswer(source, fault, Text(en, nl))


REPAIR_FP16 = Exercise(
    key="repair_fp16",
    function="train_epoch",
    statement=Text(
        "Somebody took the float16 loop that they always use, with a GradScaler and with clipping, and made it "
        "accumulate. It stops with `unscale_() has already been called on this optimizer since the last update()`. "
        "Repair it. The true gradient of a window is to be clipped to `max_norm`. A window in which something "
        "overflows must not change the weights, and the windows after it must be right. All windows are full.",
        "Iemand nam de float16-lus die hij altijd gebruikt, met een GradScaler en met clippen, en liet die "
        "accumuleren. De lus stopt met `unscale_() has already been called on this optimizer since the last "
        "update()`. Repareer hem. De echte gradient van een venster moet tot `max_norm` geclipt worden. Een venster "
        "waarin iets overloopt mag de gewichten niet veranderen, en de vensters erna moeten kloppen. Alle vensters "
        "zijn vol.",
    ),
    starter=_BEGIN + _UNSCALE + _CLIP + _END + _STEP + _UPDATE + _ZERO,
    hints=(
        Text(
            "Which of these lines belong to a micro-batch, and which to a window?",
            "Welke van deze regels horen bij een micro-batch, en welke bij een venster?",
        ),
        Text(
            "After `unscale_` the gradient has its true size. What size does the next backward add?",
            "Na `unscale_` heeft de gradient zijn echte grootte. Met welke grootte telt de volgende backward erbij op?",
        ),
        Text(
            "Only the forward and the scaled backward are done for every micro-batch. All the rest waits for the end "
            "of the window, in the order in which it stands.",
            "Alleen de forward en de geschaalde backward doe je voor elke micro-batch. De rest wacht op het eind van "
            "het venster, in de volgorde waarin het er staat.",
        ),
    ),
    solution=_RIGHT,
    wrong=(
        _fp16(
            _BEGIN + _UNSCALE + _CLIP + _END + _STEP + "        scaler.update()\n" + _END + _ZERO,
            "update_every_micro_batch",
            "The error is gone, because `update()` now follows every `unscale_`. But the gradient of the first "
            "micro-batch is divided by the scale again at each later one, and scaled pieces are added to unscaled "
            "ones.",
            "De fout is weg, want `update()` volgt nu op elke `unscale_`. Maar de gradient van de eerste micro-batch "
            "wordt bij elke volgende opnieuw door de schaal gedeeld, en geschaalde stukken komen bij teruggeschaalde.",
        ),
        _fp16(
            _BEGIN
            + _UNSCALE
            + _CLIP
            + "        scaler.step(optimizer)\n        scaler.update()\n        optimizer.zero_grad()\n",
            "no_accumulation",
            "Every micro-batch makes an update of its own now. Nothing is accumulated.",
            "Elke micro-batch doet nu een eigen update. Er wordt niets geaccumuleerd.",
        ),
        _fp16(
            _BEGIN + _END + _in(_CLIP) + _STEP + _UPDATE + _ZERO,
            "clip_scaled",
            "You clip a gradient that is still as many times too long as the scale says, and it is divided by the "
            "scale afterwards: hardly anything is left of it.",
            "Je clipt een gradient die nog zo veel keer te lang is als de schaal aangeeft, en daarna wordt hij door de "
            "schaal gedeeld: er blijft bijna niets van over.",
        ),
        _fp16(
            _BEGIN + _CLIP + _END + _in(_UNSCALE) + _STEP + _UPDATE + _ZERO,
            "clip_scaled_every_micro_batch",
            "You clip inside the window, and what you clip is still scaled. Early micro-batches shrink again and "
            "again, and hardly anything is left of the sum.",
            "Je clipt binnen het venster, en wat je clipt is nog geschaald. Vroege micro-batches krimpen steeds "
            "opnieuw, en van de som blijft bijna niets over.",
        ),
        _fp16(
            _BEGIN + _END + _in(_UNSCALE) + _STEP + _UPDATE + _ZERO,
            "no_clip",
            "Nothing is clipped any more before the update.",
            "Er wordt vóór de update niets meer geclipt.",
        ),
        _fp16(
            _BEGIN
            + _ONCE
            + "            before = scaler.get_scale()\n"
            + _STEP
            + _UPDATE
            + "            if scaler.get_scale() >= before:\n                optimizer.zero_grad()\n",
            "zeroed_if_updated",
            "After a window that was skipped its infinite gradient stays in `.grad`. Whatever is added to it is not "
            "finite either, so every window after it is skipped too.",
            "Na een overgeslagen venster blijft de oneindige gradient in `.grad` staan. Wat erbij opgeteld wordt is "
            "dan ook niet eindig, dus elk venster erna wordt ook overgeslagen.",
        ),
        _fp16(
            _BEGIN + _ONCE + "            optimizer.step()\n" + _UPDATE + _ZERO,
            "unguarded",
            "The optimizer is called directly, so nobody looks whether the gradient is finite. One overflow, and the "
            "weights are NaN.",
            "De optimizer wordt rechtstreeks aangeroepen, dus niemand kijkt of de gradient eindig is. Eén overloop, en "
            "de gewichten zijn NaN.",
        ),
        _fp16(
            _LOOP + _FORWARD + "        loss.backward()\n" + _ONCE + _STEP + _UPDATE + _ZERO,
            "not_scaled",
            "The loss goes backward without the scale, and the scaler refuses to take out what it has not put in. In "
            "float16 small gradients vanish that way.",
            "De loss gaat zonder de schaal terug, en de scaler weigert eruit te halen wat hij er niet in heeft "
            "gestopt. Zo verdwijnen in float16 kleine gradients.",
        ),
        _fp16(
            _LOOP
            + "        loss = loss_fn(model, batch) / accumulation_steps\n"
            + _BACKWARD
            + _ONCE
            + _STEP
            + _UPDATE
            + _ZERO,
            "not_float16",
            "The forward runs in float32 now. That repairs a lot, and it gives away the memory and the speed that "
            "float16 was for.",
            "De forward draait nu in float32. Dat lost veel op, en je geeft het geheugen en de snelheid weg waarvoor "
            "float16 er was.",
        ),
        _fp16(
            _RIGHT.replace(" / accumulation_steps\n", "\n"),
            "missing_scale",
            "The losses of a window are added up and not divided by N. The scaler's scale is another matter: it is "
            "taken out again.",
            "De losses van een venster worden opgeteld en niet door N gedeeld. De schaal van de scaler is iets anders: "
            "die gaat er weer uit.",
        ),
        _fp16(
            _BEGIN + _ONCE + _STEP + _ZERO,
            "no_update",
            "The first window runs, and the second is refused: the scaler has not been told that the first is over.",
            "Het eerste venster draait, en het tweede wordt geweigerd: de scaler weet niet dat het eerste voorbij is.",
        ),
        _fp16(
            _LOOP
            + _FORWARD
            + "        if loss.isfinite():\n            scaler.scale(loss).backward()\n"
            + _ONCE
            + _STEP
            + _UPDATE
            + _ZERO,
            "left_out",
            "A micro-batch that overflows is left out, and the others are still divided by N. Its window was to change "
            "nothing.",
            "Een micro-batch die overloopt wordt weggelaten, en de andere worden nog steeds door N gedeeld. Dat "
            "venster mocht niets veranderen.",
        ),
        _fp16(
            _BEGIN
            + _END
            + "            for parameter in model.parameters():\n"
            + "                parameter.grad /= scaler.get_scale()\n"
            + _in(_CLIP)
            + _STEP
            + _UPDATE
            + _ZERO,
            "unscaled_twice",
            "You divide by the scale yourself, and the scaler does not know it: it divides once more.",
            "Je deelt zelf door de schaal, en de scaler weet dat niet: die deelt nog een keer.",
        ),
        _fp16(
            _BEGIN.replace(_FORWARD, "        optimizer.zero_grad()\n" + _FORWARD) + _ONCE + _STEP + _UPDATE,
            "only_the_last",
            "Each micro-batch wipes out what the ones before it have added. An update applies the last one alone.",
            "Elke micro-batch veegt weg wat de vorige hadden opgeteld. Een update past alleen de laatste toe.",
        ),
    ),
    judge=TrialCheck(
        fp16_epoch,
        (
            Group(Text("windows in which nothing is clipped", "vensters waarin niets geclipt wordt"), ((1, 0, 1e6),)),
            Group(Text("windows that are clipped", "vensters die geclipt worden"), ((2, 0, 0.5),)),
            Group(
                Text("an epoch in which one window overflows", "een epoch waarin één venster overloopt"),
                ((3, 2, 1e6), (4, 8, 0.5)),
            ),
        ),
        tolerance=1e-4,
        same={
            "update_every_micro_batch": (
                _BEGIN + _UNSCALE + _END + _in(_CLIP) + _STEP + "        scaler.update()\n" + _END + _ZERO,
            ),
            "zeroed_if_updated": (_BEGIN + _ONCE + _STEP + _UPDATE,),
            "no_clip": (
                _BEGIN + _END + _STEP + _UPDATE + _ZERO,
                _BEGIN + _ONCE.replace(_in(_CLIP), "") + _STEP + _in(_CLIP) + _UPDATE + _ZERO,
            ),
        },
    ),
)

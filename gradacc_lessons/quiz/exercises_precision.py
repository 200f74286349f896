"""The exercises of lesson 08: a float16 loop that a GradScaler refuses, and a float32 sum of bfloat16 gradients."""

from gradacc_lessons.quiz.exercise import Exercise, Group, WrongAnswer
from gradacc_lessons.quiz.judge_sum import TrialCheck
from gradacc_lessons.quiz.try_precision import float32_sum, fp16_epoch
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

_ADD_UP = '''import torch


def add_up_gradients(model, micro_batches, loss_fn):
    """One float32 tensor per parameter: the gradient of the mean of the micro-batches' losses."""
'''
_ZEROS = "    buffers = [torch.zeros_like(p, dtype=torch.float32) for p in model.parameters()]\n"
_EACH = "    for batch in micro_batches:\n"
_MEAN = "        (loss_fn(model, batch) / len(micro_batches)).backward()\n"
_ADD = "        for buffer, p in zip(buffers, model.parameters()):\n            buffer += p.grad\n"
_EMPTY = "        model.zero_grad()\n"
_RETURN = "    return buffers\n"


def _sum(body: str, fault: str, en: str, nl: str) -> WrongAnswer:
    return WrongAnswer(_ADD_UP + body, fault, Text(en, nl))


FLOAT32_SUM = Exercise(
    key="float32_sum",
    function="add_up_gradients",
    statement=Text(
        "Write `add_up_gradients(model, micro_batches, loss_fn)` for a model whose weights are bfloat16 and stay so. "
        "`loss_fn(model, batch)` is a mean loss, and all micro-batches have the same size. Return a list with one "
        "float32 tensor per parameter, in the order of `model.parameters()`: the gradient of the mean of the losses. "
        "What one micro-batch leaves in `.grad` is bfloat16; the sum must not be. `.grad` is empty when you are "
        "called.",
        "Schrijf `add_up_gradients(model, micro_batches, loss_fn)` voor een model waarvan de gewichten bfloat16 zijn "
        "en blijven. `loss_fn(model, batch)` is een gemiddelde loss, en alle micro-batches zijn even groot. Geef een "
        "lijst terug met één float32-tensor per parameter, in de volgorde van `model.parameters()`: de gradient van "
        "het gemiddelde van de losses. Wat één micro-batch in `.grad` achterlaat is bfloat16; de som mag dat niet "
        "zijn. `.grad` is leeg als je wordt aangeroepen.",
    ),
    starter=_ADD_UP + "    raise NotImplementedError\n",
    hints=(
        Text(
            "Where is the sum made when several backwards follow one another? In which type?",
            "Waar ontstaat de som als er meerdere backwards na elkaar komen? In welk type?",
        ),
        Text(
            "Keep tensors of your own, and take each micro-batch's gradient out of `.grad` before the next one comes.",
            "Houd eigen tensors bij, en haal de gradient van elke micro-batch uit `.grad` voordat de volgende komt.",
        ),
        Text(
            "`torch.zeros_like(p, dtype=torch.float32)` makes a buffer. After adding to it, what must happen to "
            "`.grad`?",
            "`torch.zeros_like(p, dtype=torch.float32)` maakt een buffer. Wat moet er met `.grad` gebeuren nadat je "
            "hem hebt opgeteld?",
        ),
    ),
    solution=_ADD_UP + _ZEROS + _EACH + _MEAN + _ADD + _EMPTY + _RETURN,
    wrong=(
        _sum(
            _EACH + _MEAN + "    return [p.grad.float() for p in model.parameters()]\n",
            "cast_at_the_end",
            "The sum was made in bfloat16, and the cast comes after it. What rounding took is gone by then.",
            "De som is in bfloat16 gemaakt, en de omzetting komt erna. Wat de afronding wegnam is dan al weg.",
        ),
        _sum(
            _ZEROS.replace(", dtype=torch.float32", "") + _EACH + _MEAN + _ADD + _EMPTY + _RETURN,
            "bfloat16_buffer",
            "What you return is bfloat16, and so was every sum on the way: what is small beside it is lost.",
            "Wat je teruggeeft is bfloat16, en elke som onderweg was dat ook: wat klein is ernaast gaat verloren.",
        ),
        _sum(
            _ZEROS + _EACH + _MEAN + _ADD + _RETURN,
            "running_sums",
            "You add `.grad` to the buffer after every micro-batch, and `.grad` still holds the ones before. The first "
            "micro-batch arrives N times.",
            "Je telt `.grad` na elke micro-batch bij de buffer op, terwijl de vorige er nog in zitten. De eerste "
            "micro-batch komt N keer aan.",
        ),
        _sum(
            _ZEROS + _EACH + _MEAN.replace(" / len(micro_batches)", "") + _ADD + _EMPTY + _RETURN,
            "missing_scale",
            "The sum is right, and it is the sum: N times the gradient of the mean.",
            "De som klopt, maar het is de som: N keer de gradient van het gemiddelde.",
        ),
        _sum(
            _EACH + _MEAN + "        buffers = [p.grad.float() for p in model.parameters()]\n" + _EMPTY + _RETURN,
            "only_the_last",
            "Every micro-batch replaces the buffers. Only the last one is in them.",
            "Elke micro-batch vervangt de buffers. Alleen de laatste zit erin.",
        ),
        _sum(
            "    model.float()\n"
            + _ZEROS
            + _EACH
            + "        batch = tuple(t.float() for t in batch)\n"
            + _MEAN
            + _ADD
            + _EMPTY
            + _RETURN,
            "model_changed",
            "The weights were to stay bfloat16, and your model is float32 now.",
            "De gewichten zouden bfloat16 blijven, en je model is nu float32.",
        ),
        _sum(
            "    import copy\n\n    model = copy.deepcopy(model).float()\n"
            + _ZEROS
            + _EACH
            + "        batch = tuple(t.float() for t in batch)\n"
            + _MEAN
            + _ADD
            + _EMPTY
            + _RETURN,
            "float32_copy",
            "These are the gradients of a float32 copy, so forward and backward ran in float32: twice the memory for "
            "activations. Only the sum needs float32.",
            "Dit zijn de gradients van een float32-kopie, dus forward en backward draaiden in float32: twee keer zo "
            "veel geheugen voor activaties. Alleen de som heeft float32 nodig.",
        ),
        _sum(
            _ZEROS
            + _EACH
            + "        loss_fn(model, batch).backward()\n"
            + _ADD
            + "            buffer /= len(micro_batches)\n"
            + _EMPTY
            + _RETURN,
            "divided_every_time",
            "You divide the whole buffer after every micro-batch, so what came early is divided again and again.",
            "Je deelt de hele buffer na elke micro-batch, dus wat vroeg kwam wordt steeds opnieuw gedeeld.",
        ),
        _sum(
            _ZEROS + _EACH + _MEAN + _ADD + _EMPTY,
            "no_buffers",
            "Return a list with one tensor for each parameter, each of that parameter's shape.",
            "Geef een lijst terug met één tensor voor elke parameter, elk met de vorm van die parameter.",
        ),
    ),
    judge=TrialCheck(
        float32_sum,
        (
            Group(Text("a single micro-batch", "één enkele micro-batch"), ((1, 1),)),
            Group(Text("a few micro-batches", "een paar micro-batches"), ((2, 8),)),
            Group(Text("64 micro-batches", "64 micro-batches"), ((3, 64),)),
        ),
        tolerance=2e-4,
        same={
            "cast_at_the_end": (
                _ADD_UP
                + "    loss = sum(loss_fn(model, batch) / len(micro_batches) for batch in micro_batches)\n"
                + "    loss.backward()\n    return [p.grad.float() for p in model.parameters()]\n",
                _ADD_UP
                + _ZEROS.replace(", dtype=torch.float32", "")
                + _EACH
                + _MEAN
                + _ADD
                + _EMPTY
                + "    return [buffer.float() for buffer in buffers]\n",
            ),
            "bfloat16_buffer": (_ADD_UP + _EACH + _MEAN + "    return [p.grad for p in model.parameters()]\n",),
            "no_buffers": (
                _ADD_UP
                + _ZEROS
                + _EACH
                + _MEAN
                + _ADD
                + _EMPTY
                + "    return torch.cat([b.flatten() for b in buffers])\n",
            ),
        },
    ),
)

"""The second exercise of lesson 08: a float32 sum of bfloat16 gradients."""

from gradacc_lessons.quiz.exercise import Exercise, Group, WrongAnswer
from gradacc_lessons.quiz.judge_sum import TrialCheck
from gradacc_lessons.quiz.try_precision import float32_sum
from gradacc_lessons.text import Text

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

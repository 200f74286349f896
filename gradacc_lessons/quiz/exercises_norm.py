"""The exercises of lesson 05: the corrected momentum, and a norm that micro-batches do not change."""

from gradacc_lessons.quiz.exercise import Exercise, Group, ValueCheck, WrongAnswer
from gradacc_lessons.quiz.judge_norm import FAULTS, NormCheck
from gradacc_lessons.text import Text

_MOMENTUM = "def corrected_momentum(momentum, accumulation_steps):\n"


def _momentum(returned: str, fault: str, en: str, nl: str) -> WrongAnswer:
    return WrongAnswer(f"{_MOMENTUM}    return {returned}\n", fault, Text(en, nl))


PRECEDENCE = Text(
    "Python takes a power before it divides: `x ** 1 / N` is `x` divided by N. Put parentheses around the exponent.",
    "Python neemt een macht voordat het deelt: `x ** 1 / N` is `x` gedeeld door N. Zet haakjes om de exponent.",
)
FLOAT32 = 5e-4
"""Relative: what float32 may lose in 1 minus a number near 1; the nearest mistake, m / N, is 5e-3 away."""

CORRECTED_MOMENTUM = Exercise(
    key="corrected_momentum",
    function="corrected_momentum",
    statement=Text(
        "Write `corrected_momentum(momentum, accumulation_steps)`: the momentum for BatchNorm with which the N "
        "micro-batches of a window together weigh as much in the running mean as one whole batch does with `momentum`. "
        "It is PyTorch's momentum: the weight of the newest.",
        "Schrijf `corrected_momentum(momentum, accumulation_steps)`: het momentum voor BatchNorm waarmee de N "
        "micro-batches van een venster samen even zwaar tellen in het lopende gemiddelde als één hele batch met "
        "`momentum`. Het is het momentum van PyTorch: het gewicht van de nieuwste.",
    ),
    starter=_MOMENTUM + '    """The momentum per micro-batch that weighs a window as `momentum` weighs a batch."""\n'
    "    raise NotImplementedError\n",
    hints=(
        Text(
            "Look at what was there before, not at what is new. What is left of it after one micro-batch, and after "
            "all N?",
            "Kijk naar wat er al was, niet naar wat nieuw is. Hoeveel daarvan blijft over na één micro-batch, en na "
            "alle N?",
        ),
        Text(
            "Each micro-batch leaves the same share of the old mean, and shares multiply. After N of them it must be "
            "the share that one whole batch leaves.",
            "Elke micro-batch laat hetzelfde aandeel van het oude gemiddelde over, en aandelen vermenigvuldig je. Na N "
            "keer moet er het aandeel staan dat één hele batch overlaat.",
        ),
        Text(
            "The share that one micro-batch leaves is the N-th root of that. The new momentum is what it does not "
            "leave.",
            "Het aandeel dat één micro-batch overlaat is daar de N-de-machtswortel van. Het nieuwe momentum is wat er "
            "niet overblijft.",
        ),
    ),
    solution=_MOMENTUM + "    kept = (1 - momentum) ** (1 / accumulation_steps)\n    return 1 - kept\n",
    wrong=(
        _momentum(
            "momentum / accumulation_steps",
            "divided",
            "Dividing by N is close for a small momentum, and too small. The shares that stay are multiplied, not "
            "added.",
            "Delen door N komt bij een klein momentum in de buurt, maar is te klein. De aandelen die blijven worden "
            "vermenigvuldigd, niet opgeteld.",
        ),
        _momentum(
            "1 - (1 - momentum) ** accumulation_steps",
            "weight_of_window",
            "That is what a window weighs without a correction. You need the way back.",
            "Dat is hoe zwaar een venster zonder correctie telt. Je hebt de weg terug nodig.",
        ),
        _momentum(
            "(1 - momentum) ** (1 / accumulation_steps)",
            "kept_share",
            "That is the share of the old mean that stays after a micro-batch. PyTorch's momentum is the other part.",
            "Dat is het aandeel van het oude gemiddelde dat na een micro-batch blijft. Het momentum van PyTorch is het "
            "andere deel.",
        ),
        _momentum(
            "momentum ** (1 / accumulation_steps)",
            "root_of_momentum",
            "You take the root of the momentum itself. That is right for libraries that call the kept share momentum; "
            "in PyTorch it is the new share.",
            "Je neemt de wortel van het momentum zelf. Dat klopt voor bibliotheken die het overgebleven aandeel "
            "momentum noemen; bij PyTorch is het het nieuwe aandeel.",
        ),
        _momentum(
            "1 - momentum ** (1 / accumulation_steps)",
            "other_convention",
            "You take the root of the new share. It is the old mean that is multiplied again and again.",
            "Je neemt de wortel van het nieuwe aandeel. Het is het oude gemiddelde dat steeds opnieuw vermenigvuldigd "
            "wordt.",
        ),
        _momentum(
            "momentum * accumulation_steps",
            "multiplied",
            "More moves per update need a smaller momentum, and yours has grown.",
            "Vaker opschuiven per update vraagt een kleiner momentum, en het jouwe is gegroeid.",
        ),
        _momentum(
            "1 - (1 - momentum) ** 1 / accumulation_steps",
            "precedence",
            PRECEDENCE.en,
            PRECEDENCE.nl,
        ),
        _momentum(
            "(1 - momentum) ** 1 / accumulation_steps",
            "precedence_and_kept_share",
            f"{PRECEDENCE.en} And what stays is not yet PyTorch's momentum.",
            f"{PRECEDENCE.nl} En wat blijft is nog niet het momentum van PyTorch.",
        ),
        _momentum(
            "momentum",
            "unchanged",
            "This is the momentum as it was. It is applied N times per update.",
            "Dit is het momentum zoals het was. Dat wordt N keer per update toegepast.",
        ),
    ),
    judge=ValueCheck(
        (
            Group(
                Text("N = 1, where nothing needs a correction", "N = 1, waar niets gecorrigeerd hoeft te worden"),
                ((0.1, 1), (0.3, 1)),
            ),
            Group(Text("PyTorch's default momentum", "het standaardmomentum van PyTorch"), ((0.1, 4), (0.1, 8))),
            Group(Text("other momenta", "andere momenta"), ((0.01, 16), (0.3, 2), (0.9, 32))),
        ),
        FLOAT32,
    ),
)

_NORM = "from torch import nn\n\n\ndef new_norm(channels):\n"


def _norm(returned: str, fault: str) -> WrongAnswer:
    return WrongAnswer(f"{_NORM}    return {returned}\n", fault, FAULTS[fault].words)


CHOOSE_NORM = Exercise(
    key="choose_norm",
    function="new_norm",
    statement=Text(
        "Write `new_norm(channels)`: a new layer that normalises feature maps of shape (images, channels, height, "
        "width), so that accumulation in micro-batches of any size gives the full batch's gradient. In evaluation mode "
        "it must do what it does in training. It is asked for 12 and for 16 channels, put into a small CNN, and "
        "measured.",
        "Schrijf `new_norm(channels)`: een nieuwe laag die feature maps van vorm (images, channels, height, width) "
        "normaliseert, zodat accumulatie in micro-batches van elke grootte de gradient van de volle batch geeft. In de "
        "evaluatiemodus moet hij doen wat hij in training doet. Hij wordt gevraagd voor 12 en voor 16 kanalen, in een "
        "kleine CNN gezet en gemeten.",
    ),
    starter=_NORM
    + '    """A norm layer whose gradient does not depend on the cut."""\n    raise NotImplementedError\n',
    hints=(
        Text(
            "Over which of the four axes may a mean be taken, if an image is not to meet its neighbours?",
            "Over welke van de vier assen mag je een gemiddelde nemen, als een afbeelding haar buren niet mag "
            "tegenkomen?",
        ),
        Text(
            "Several layers of `torch.nn` take their means within one image. One of them wants a number of groups that "
            "divides the channels.",
            "Meer dan één laag van `torch.nn` neemt zijn gemiddelden binnen één afbeelding. Eén ervan wil een aantal "
            "groepen waar het aantal kanalen door deelbaar is.",
        ),
        Text(
            "Groups of four channels: how many are there?",
            "Groepen van vier kanalen: hoeveel zijn dat er?",
        ),
    ),
    solution=_NORM + "    return nn.GroupNorm(channels // 4, channels)\n",
    wrong=(
        _norm("nn.BatchNorm2d(channels)", "batch_statistics"),
        _norm("nn.BatchNorm2d(channels).eval()", "undone"),
        _norm("nn.Identity()", "no_norm"),
        _norm("nn.InstanceNorm2d(channels, track_running_stats=True)", "evaluates_otherwise"),
        _norm("nn.Sequential(nn.GroupNorm(4, channels), nn.Dropout(0.1))", "random"),
        _norm("nn.Sequential(nn.GroupNorm(4, channels), nn.AvgPool2d(2))", "wrong_shape"),
        _norm("nn.GroupNorm", "no_module"),
    ),
    judge=NormCheck(),
)

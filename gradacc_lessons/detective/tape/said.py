"""What a tape says about a mistake: title and lesson of its own findings, and what was seen."""

from gradacc_lessons.text import Text

OWN: dict[str, tuple[Text, str]] = {
    "update_without_gradient": (
        Text("An update without a gradient", "Een update zonder gradient"),
        "07_once_per_window",
    ),
    "applied_again": (
        Text("A gradient that is applied again", "Een gradient die nog een keer wordt toegepast"),
        "07_once_per_window",
    ),
    "windows_differ": (Text("Windows that are not N long", "Vensters die niet N lang zijn"), "01_accumulate"),
    "unscale_twice": (Text("Unscaled twice", "Twee keer teruggeschaald"), "08_mixed_precision"),
    "unscale_inside_window": (
        Text("Unscaled before the window was complete", "Teruggeschaald voor het venster compleet was"),
        "08_mixed_precision",
    ),
    "clip_scaled_gradients": (
        Text("Clipped while still scaled", "Geclipt terwijl hij nog geschaald was"),
        "08_mixed_precision",
    ),
    "not_finite_kept": (
        Text("A gradient that is not finite is kept", "Een gradient die niet eindig is, blijft staan"),
        "08_mixed_precision",
    ),
    "ema_every_micro_batch": (
        Text(
            "The average of the weights moves at every micro-batch",
            "Het gemiddelde van de gewichten verschuift bij elke micro-batch",
        ),
        "07_once_per_window",
    ),
    "all_reduce_every_micro_batch": (
        Text("The processes talk at every micro-batch", "De processen overleggen bij elke micro-batch"),
        "12_many_devices",
    ),
    "no_gradient": (
        Text("Parameters that never get a gradient", "Parameters die nooit een gradient krijgen"),
        "01_accumulate",
    ),
    "low_precision_buffer": (
        Text("Many gradients added up in 16 bits", "Veel gradients opgeteld in 16 bits"),
        "08_mixed_precision",
    ),
}
"""Title and lesson of what is in no catalogue of loops: it needs more than a loop to go wrong."""

SAID: dict[str, Text] = {
    "zero_grad_before_step": Text(
        "Before update {update} the gradients of {lost} micro-batch(es) are zeroed, and nothing is left to apply.",
        "Voor update {update} worden de gradients van {lost} micro-batch(es) op nul gezet, en er blijft niets over.",
    ),
    "update_without_gradient": Text(
        "At update {update} no parameter has a gradient: no backward has come before it.",
        "Bij update {update} heeft geen enkele parameter een gradient: er is geen backward aan voorafgegaan.",
    ),
    "updated_twice": Text(
        "Update {update} applies a gradient that the update before it has applied already.",
        "Update {update} past een gradient toe die de vorige update al heeft toegepast.",
    ),
    "never_zero_grad": Text(
        "Update {update} applies {fresh} new micro-batch(es) and, once more, {old} that an earlier update has applied: "
        "nothing is zeroed in between.",
        "Update {update} past {fresh} nieuwe micro-batch(es) toe, en nog een keer {old} die al zijn toegepast: "
        "daartussen wordt niets op nul gezet.",
    ),
    "applied_again": Text(
        "Update {update} applies {fresh} new micro-batch(es) and, once more, {old} that an earlier update has applied.",
        "Update {update} past {fresh} nieuwe micro-batch(es) toe, en nog een keer {old} die al zijn toegepast.",
    ),
    "zero_grad_every_micro_batch": Text(
        "Of the {ran} micro-batches before update {update}, {lost} are zeroed without having been applied.",
        "Van de {ran} micro-batches voor update {update} worden er {lost} op nul gezet zonder te zijn toegepast.",
    ),
    "step_every_micro_batch": Text(
        "N is {n}, and every update applies one new micro-batch.",
        "N is {n}, en elke update past één nieuwe micro-batch toe.",
    ),
    "no_accumulation": Text(
        "N is {n}, and every micro-batch has an update and a zero_grad of its own.",
        "N is {n}, en elke micro-batch heeft een eigen update en een eigen zero_grad.",
    ),
    "step_before_backward": Text(
        "The first update applies {first} micro-batches and those after it {n}: each comes one micro-batch too early "
        "({lengths}).",
        "De eerste update past {first} micro-batches toe en de volgende {n}: elke update komt één micro-batch te vroeg "
        "({lengths}).",
    ),
    "window_off_by_one": Text(
        "The first window has {first} micro-batch(es), those after it {n}: all are shifted ({lengths}).",
        "Het eerste venster heeft {first} micro-batch(es), de volgende {n}: alles is verschoven ({lengths}).",
    ),
    "windows_one_too_long_or_short": Text(
        "N is {n}, and the windows have {length} micro-batches ({lengths}).",
        "N is {n}, en de vensters hebben {length} micro-batches ({lengths}).",
    ),
    "one_update_per_epoch": Text(
        "N is {n}, and each update applies all {length} micro-batches of an epoch.",
        "N is {n}, en elke update past alle {length} micro-batches van een epoch toe.",
    ),
    "accumulation_steps_ignored": Text(
        "N is {n}, and the windows have {length} micro-batches, one like the other ({lengths}).",
        "N is {n}, en de vensters hebben {length} micro-batches, de een als de ander ({lengths}).",
    ),
    "windows_differ": Text(
        "N is {n}, and the windows have {lengths} micro-batches.",
        "N is {n}, en de vensters hebben {lengths} micro-batches.",
    ),
    "tail_leaks": Text(
        "Update {update} applies {length} micro-batches: {left} were left over from the epoch before and were "
        "neither applied nor zeroed there.",
        "Update {update} past {length} micro-batches toe: {left} waren over van de vorige epoch en zijn daar niet "
        "toegepast en niet op nul gezet.",
    ),
    "tail_dropped": Text(
        "The last {left} micro-batch(es) of an epoch go forward and backward, and no update applies them.",
        "De laatste {left} micro-batch(es) van een epoch gaan forward en backward, en geen update past ze toe.",
    ),
    "tail_underscaled": Text(
        "Update {update} applies {length} micro-batches, and each of their losses was divided by {n}: it is "
        "{length}/{n} of what it should be.",
        "Update {update} past {length} micro-batches toe, en elke loss is door {n} gedeeld: hij is {length}/{n} van "
        "wat hij hoort te zijn.",
    ),
    "double_scale": Text(
        "Each loss was divided by {n} x {n}: somebody divides by N, and somebody else does it again.",
        "Elke loss is door {n} x {n} gedeeld: iemand deelt door N, en iemand anders doet het nog eens.",
    ),
    "running_scale": Text(
        "The losses of a window were divided by 1, 2, 3 and so on, one after the other.",
        "De losses van een venster zijn gedeeld door 1, 2, 3 enzovoort, de een na de ander.",
    ),
    "clip_every_micro_batch": Text(
        "In window {window} the gradient is clipped, and backward adds to it afterwards.",
        "In venster {window} wordt de gradient geclipt, en daarna telt een backward er nog bij op.",
    ),
    "grad_divided_every_micro_batch": Text(
        "In window {window} the gradient is divided by {divisor:g}, and backward adds to it afterwards: what came "
        "early is divided again and again.",
        "In venster {window} wordt de gradient door {divisor:g} gedeeld, en daarna telt een backward er nog bij op: "
        "wat vroeg kwam, wordt steeds opnieuw gedeeld.",
    ),
    "backward_once_per_window": Text(
        "{forwards} micro-batches go forward before update {update}, and one of them goes backward.",
        "Voor update {update} gaan {forwards} micro-batches forward, en één daarvan gaat backward.",
    ),
    "clip_too_late": Text(
        "Update {update} comes first, and the gradient is clipped after it.",
        "Update {update} komt eerst, en daarna wordt de gradient geclipt.",
    ),
    "clip_scaled_gradients": Text(
        "In window {window} the gradient was clipped to norm {norm:.4g} while it was {scale:.6g} times too long, "
        "and unscaled afterwards: what is applied has norm {small:.2g}.",
        "In venster {window} is de gradient geclipt tot norm {norm:.4g} terwijl hij {scale:.6g} keer te lang was, en "
        "daarna teruggeschaald: wat wordt toegepast heeft norm {small:.2g}.",
    ),
    "unscale_twice": Text(
        "In window {window} the gradient is unscaled {times} times: it is divided by the loss scale more than once.",
        "In venster {window} wordt de gradient {times} keer teruggeschaald: hij wordt vaker dan één keer door de "
        "loss scale gedeeld.",
    ),
    "unscale_inside_window": Text(
        "In window {window} the gradient is unscaled, and backward adds scaled gradients to it afterwards.",
        "In venster {window} wordt de gradient teruggeschaald, en daarna telt backward er geschaalde bij op.",
    ),
    "not_finite_kept": Text(
        "After micro-batch {micro_batch}, in window {window}, the gradient is not finite, and backward goes on adding "
        "to it: it stays like that until it is zeroed, and no update can use it.",
        "Na micro-batch {micro_batch}, in venster {window}, is de gradient niet eindig, en backward telt er gewoon bij "
        "op: zo blijft hij tot hij op nul wordt gezet, en geen update kan hem gebruiken.",
    ),
    "scheduler_every_micro_batch": Text(
        "For update {update} the schedule moves {moves} times.",
        "Voor update {update} verspringt het schema {moves} keer.",
    ),
    "scheduler_before_update": Text(
        "The schedule moves between the last backward and update {update}: each update uses the learning rate of the "
        "one after it.",
        "Het schema verspringt tussen de laatste backward en update {update}: elke update gebruikt de learning rate "
        "van de volgende.",
    ),
    "ema_every_micro_batch": Text(
        "For update {update} the average of the weights, or something else that is frozen or watched, moves {times} "
        "times.",
        "Voor update {update} verschuift het gemiddelde van de gewichten, of iets anders dat bevroren is of bekeken "
        "wordt, {times} keer.",
    ),
    "all_reduce_every_micro_batch": Text(
        "For update {update} the gradients are all-reduced {times} times. Once would do; the result is the same, and "
        "the others only cost time.",
        "Voor update {update} is er {times} keer een all-reduce van de gradients. Eén keer is genoeg; de uitkomst is "
        "dezelfde, de andere kosten alleen tijd.",
    ),
    "sum_then_backward": Text(
        "The backward before update {update} comes through {forwards} forwards at once: their graphs were all alive "
        "until then, which takes the memory of the full batch.",
        "De backward voor update {update} gaat door {forwards} forwards tegelijk: hun grafen bestonden tot dan "
        "allemaal, en dat kost het geheugen van de volle batch.",
    ),
    "graphs_kept_alive": Text(
        "The graphs of {most} forwards are kept over micro-batches, and no backward needs them together.",
        "De grafen van {most} forwards worden over micro-batches heen bewaard, en geen backward heeft ze samen nodig.",
    ),
    "no_gradient": Text(
        "{count} trainable parameter(s) got no gradient in any backward: {names}.",
        "{count} trainbare parameter(s) kregen in geen enkele backward een gradient: {names}.",
    ),
    "low_precision_buffer": Text(
        "Up to {longest} micro-batches are added up in {dtype}. What is small beside the sum is lost.",
        "Tot {longest} micro-batches worden opgeteld in {dtype}. Wat klein is naast de som gaat verloren.",
    ),
}
"""What was seen, by finding."""

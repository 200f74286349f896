"""Which moment of a window decides how much memory it needs."""

from typing import Literal

from gradacc_lessons.memory.profile import MemoryProfile

Binding = Literal["turn", "end of backward", "update"]

WORDS: dict[Binding, str] = {
    "turn": "where forward turns into backward and all saved activations are there: a smaller micro-batch lowers it",
    "end of backward": "towards the end of backward, when most activations are gone and fresh gradients stand beside "
    "those of before: a smaller micro-batch hardly lowers it",
    "update": "in the optimizer's update: a smaller micro-batch would not lower it",
}


def binding_moment(profile: MemoryProfile) -> Binding:
    """Where the peak of a profile falls."""
    time = profile.timeline
    at = int(time["total"].to_numpy().argmax())
    if time["phase"].iloc[at] == "update":
        return "update"
    saved = time["saved activations"].to_numpy()
    return "turn" if 2 * saved[at] >= saved.max() else "end of backward"

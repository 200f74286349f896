"""Which moment of a window decides how much memory it needs."""

from typing import Literal

from gradacc_lessons.memory.profile import MemoryProfile

Binding = Literal["forward", "turn", "end of backward", "update"]


def binding_moment(profile: MemoryProfile) -> Binding:
    """Where the peak of a profile falls.

    "turn" is where forward turns into backward: at least half of all that is ever saved for backward is there.
    Where little is saved (a frozen trunk, say), a forward may need most for what it does not keep.
    """
    if profile.phase == "update":
        return "update"
    time = profile.timeline
    now, saved = time.iloc[_peak(profile)], time["saved activations"].to_numpy()
    at_turn = 0 < saved.max() <= 2 * now["saved activations"]
    if profile.phase == "forward":
        return "turn" if at_turn and now["saved activations"] >= now["temporaries"] else "forward"
    return "turn" if at_turn else "end of backward"


def moment_in_words(profile: MemoryProfile, checkpointing: bool) -> str:
    """What happens at that moment, as it goes on after "The peak comes"."""
    moment = binding_moment(profile)
    if moment == "update":
        return "in the optimizer's update"
    if moment == "forward":
        return "in a forward, while results are there that backward does not need"
    if moment == "turn" and checkpointing:
        return (
            "where forward turns into backward: the inputs of the checkpointed blocks are there, and what is inside "
            "one of the last of them, or comes after them"
        )
    if moment == "turn":
        return "where forward turns into backward and most saved activations are there"
    kept = "inputs of the checkpointed blocks" if checkpointing else "saved activations"
    fresh = "fresh gradients come beside those of before" if _gradients_before(profile) else "the gradients come"
    return f"further on in backward, when most {kept} are gone and {fresh}"


def _peak(profile: MemoryProfile) -> int:
    return int(profile.timeline["total"].to_numpy().argmax())


def _gradients_before(profile: MemoryProfile) -> bool:
    """Whether there were gradients already in the forward of the micro-batch that has the peak."""
    so_far = profile.timeline.iloc[: _peak(profile)]
    forward = so_far[so_far["phase"] == "forward"]
    return len(forward) > 0 and bool(forward["gradients"].iloc[-1] > 0)

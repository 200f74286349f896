"""What cannot be examined, in one sentence."""


class ExamineError(ValueError):
    """The model, its loss or its batch cannot be examined; the message says what is wrong and what to do."""


def words_of(error: BaseException) -> str:
    """An exception's type and the first line of what it says."""
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0]}" if said else type(error).__name__

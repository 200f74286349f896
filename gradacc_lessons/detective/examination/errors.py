"""What cannot be examined, in one sentence."""


class ExamineError(ValueError):
    """The model, its loss or its batch cannot be examined; the message says what is wrong and what to do."""

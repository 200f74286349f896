"""What an exception says, in a sentence of ours."""


def words_of(error: BaseException) -> str:
    """An exception's type and the first line of what it says."""
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0]}" if said else type(error).__name__

"""What an exception says, in a sentence of ours."""


def words_of(error: BaseException) -> str:
    """An exception's type and the first line of what it says, without its full stop."""
    kind, said = type(error).__name__, first_line(error)
    return kind if said == kind else f"{kind}: {said}"


def first_line(error: BaseException) -> str:
    """The first line of what an exception says, without its full stop; its type if it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")

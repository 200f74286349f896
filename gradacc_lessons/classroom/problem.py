"""What goes wrong in a class, as a sentence in both languages."""

from gradacc_lessons.text import Text


class ClassError(ValueError):
    """One sentence says what is wrong and what to do; `id` is a stable word for programs, `text` has both languages."""

    def __init__(self, id: str, en: str, nl: str) -> None:
        super().__init__(en)
        self.id, self.text = id, Text(en, nl)

"""One text in the two languages of the course."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

Language = Literal["en", "nl"]
LANGUAGES: tuple[Language, ...] = get_args(Language)


@dataclass(frozen=True)
class Text:
    """The same words in English and in Dutch."""

    en: str
    nl: str

    def to(self, language: Language) -> str:
        """The text in `language`; ValueError names the languages there are."""
        if language not in LANGUAGES:
            raise ValueError(f"the language {language!r} is not one of {', '.join(LANGUAGES)}")
        return self.nl if language == "nl" else self.en


def joined(parts: Iterable[Text], between: str = " ") -> Text:
    """The parts one after the other, in each language."""
    parts = list(parts)
    return Text(en=between.join(part.en for part in parts), nl=between.join(part.nl for part in parts))


def counted(number: int, unit: str) -> str:
    """The number with its unit, in the singular or the plural: 1 update, 1,024 micro-batches."""
    plural = f"{unit}es" if unit.endswith("ch") else f"{unit}s"
    return f"{number:,} {unit if number == 1 else plural}"

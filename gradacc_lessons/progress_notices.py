"""What a learner is told about the file that keeps progress."""

import os
from pathlib import Path

from gradacc_lessons.home import expanded
from gradacc_lessons.text import Text


def shown(file: Path) -> str:
    """Where `file` is, as it may stand in a notebook that is handed on: without anybody's name in it."""
    try:
        if home := os.environ.get("GRADACC_HOME"):
            folder, name = expanded(home), "GRADACC_HOME"
        else:
            folder, name = expanded("~"), "~"
    except ValueError:
        return str(file)
    if file == folder:
        return name
    return f"{name}/{file.relative_to(folder).as_posix()}" if file.is_relative_to(folder) else str(file)


def set_aside(kept: Path, *, newer: bool) -> Text:
    """The file could not be used, and is beside the new one under another name."""
    why_en = "was written by a newer version of the course" if newer else "is damaged"
    why_nl = "is door een nieuwere versie van de cursus geschreven" if newer else "is beschadigd"
    later_en = " Once the course here is as new, `gradacc progress import` takes that file over." if newer else ""
    later_nl = (
        " Zodra de cursus hier net zo nieuw is, neemt `gradacc progress import` dat bestand over." if newer else ""
    )
    return Text(
        f"Your progress file {why_en}. It was kept as {shown(kept)}, and a new one was begun.{later_en}",
        f"Je voortgangsbestand {why_nl}. Het is bewaard als {shown(kept)}, en er is een nieuw bestand begonnen."
        f"{later_nl}",
    )


def migrated(kept: Path) -> Text:
    """The file was brought up to date."""
    return Text(
        f"Your progress file was of an older version and is now up to date. A copy was kept as {shown(kept)}.",
        f"Je voortgangsbestand was van een oudere versie en is nu bijgewerkt. Een kopie is bewaard als {shown(kept)}.",
    )


def not_kept(file: Path, error: Exception) -> Text:
    """The disk refuses."""
    why = getattr(error, "strerror", None) or str(error)
    locked = "locked" in why
    first_en = "Close what else is writing there" if locked else "Free some disk space"
    first_nl = "Sluit wat daar verder aan het schrijven is" if locked else "Maak schijfruimte vrij"
    return Text(
        f"Your answers are graded but cannot be saved in {shown(file.parent)} ({why}). {first_en}, or set"
        " GRADACC_HOME to a folder you may write in; what you answer until then is saved once that works.",
        f"Je antwoorden worden nagekeken maar kunnen niet worden opgeslagen in {shown(file.parent)} ({why})."
        f" {first_nl}, of zet GRADACC_HOME op een map waarin je mag schrijven; wat je tot dan antwoordt wordt"
        " opgeslagen zodra dat lukt.",
    )

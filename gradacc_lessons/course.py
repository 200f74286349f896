"""Where the course's own files are: in the repository, or inside the installed package."""

from pathlib import Path

_PACKAGE = Path(__file__).parent


def course_folder(name: str) -> Path:
    """The folder "notebooks" or "quizzes".

    An editable install reads the repository's folders, a wheel its own copy under `_course`.
    FileNotFoundError if neither is there.
    """
    for folder in (_PACKAGE / "_course" / name, _PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"this copy of gradacc-lessons has no {name!r} folder; reinstall the package")

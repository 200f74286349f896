"""What the cells of a lesson say."""

import nbformat

from gradacc_lessons.course import course_folder


def cells(lesson: str, kinds: tuple[str, ...] = ("code", "markdown")) -> dict[str, str]:
    """Source by cell id, in the notebook's order; `lesson` is the notebook's name without its ending."""
    notebook = nbformat.read(course_folder("notebooks") / f"{lesson}.ipynb", as_version=4)
    return {cell.id: cell.source for cell in notebook.cells if cell.cell_type in kinds}

"""The smallest notebook that has everything a lesson must have."""

from nbformat import NotebookNode, v4

from gradacc_lessons.authoring.cells import BADGE_ID, SETUP_ID
from gradacc_lessons.authoring.check import CHECKED

SLIDE = {"slideshow": {"slide_type": "slide"}}


def markdown(cell_id: str, source: str) -> NotebookNode:
    return v4.new_markdown_cell(source, id=cell_id, metadata=SLIDE)


def code(cell_id: str, source: str, *tags: str) -> NotebookNode:
    return v4.new_code_cell(source, id=cell_id, metadata={**SLIDE, "tags": list(tags)})


def small_lesson() -> NotebookNode:
    """Never executed; the fixed cells are empty, for cleaning fills them."""
    return v4.new_notebook(
        cells=[
            markdown("title", "# A lesson\n\nWhat you will see.\n\n```python\n# no heading\n```"),
            markdown(BADGE_ID, "-"),
            code(SETUP_ID, "pass"),
            markdown("sum", "## Sums"),
            code("two", "print(1 + 1)", CHECKED),
            code("table", "import pandas as pd\n\npd.DataFrame({'n': [1, 2]})", CHECKED),
        ]
    )

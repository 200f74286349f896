"""What a notebook shows as the course's own code is the code that the package runs."""

import ast
import inspect

import nbformat

from gradacc_lessons import accumulate
from gradacc_lessons.course import course_folder


def bare(source: str) -> str:
    """A function's code without docstring, annotations and comments."""
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    if ast.get_docstring(function) is not None:
        del function.body[0]
    function.returns = None
    for argument in function.args.args:
        argument.annotation = None
    return ast.unparse(function)


def test_lesson_01_shows_accumulate_as_it_is() -> None:
    notebook = nbformat.read(course_folder("notebooks") / "01_accumulate.ipynb", as_version=4)
    (shown,) = [cell.source for cell in notebook.cells if cell.id == "accumulate-source"]
    assert bare(shown) == bare(inspect.getsource(accumulate))

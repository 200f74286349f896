"""Each way to spoil a notebook gets its own sentence, and only that one."""

import json

import pytest
from nbformat import v4

from gradacc_lessons.authoring.check import LARGEST_FILE_BYTES, LONGEST_CELL_LINES, check
from gradacc_lessons.authoring.clean import WIDGET_VIEW, source_digest


def cell(notebook, cell_id):
    return next(cell for cell in notebook.cells if cell.id == cell_id)


def html_output(html):
    return v4.new_output("display_data", {"text/html": html})


def code_changed(notebook):
    cell(notebook, "two").source = "print(1 + 2)"


def never_executed(notebook):
    del notebook.metadata.gradacc["executed"]


def executed_out_of_order(notebook):
    cell(notebook, "two").execution_count = 9


def widget_state(notebook):
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}


def widget_view(notebook):
    data = {WIDGET_VIEW: {"model_id": "0"}, "text/plain": "IntSlider(value=0)"}
    cell(notebook, "two").outputs.append(v4.new_output("display_data", data))


def execution_times(notebook):
    cell(notebook, "two").metadata["execution"] = {"iopub.execute_input": "2026-01-01T00:00:00Z"}


def vscode_metadata(notebook):
    notebook.metadata["vscode"] = {"interpreter": {}}


def exact_python_version(notebook):
    notebook.metadata.language_info["version"] = "3.11.7"


def progress_bar_in_text(notebook):
    cell(notebook, "two").outputs[0].text = "10%\r100%\n2\n"


def memory_address(notebook):
    cell(notebook, "table").outputs[0].data["text/plain"] = "<Axes at 0x7f00>"


def same_id_twice(notebook):
    cell(notebook, "sum").id = "title"


def set_up_cell_changed(notebook):
    cell(notebook, "setup").source += "\nprint(1)"


def badge_points_elsewhere(notebook):
    cell(notebook, "badge").source = "[Open](https://example.org)"


def ended_in_an_error(notebook):
    cell(notebook, "two").outputs = [v4.new_output("error", ename="ZeroDivisionError", evalue="", traceback=[])]


def wrote_to_stderr(notebook):
    cell(notebook, "two").outputs.append(v4.new_output("stream", name="stderr", text="a warning\n"))


def two_first_level_headings(notebook):
    cell(notebook, "sum").source = "# Sums"


def no_first_level_heading(notebook):
    cell(notebook, "title").source = "## A lesson"


def skipped_heading_level(notebook):
    cell(notebook, "sum").source = "### Sums"


def no_slide_type(notebook):
    del cell(notebook, "sum").metadata["slideshow"]


def long_cell(notebook):
    cell(notebook, "table").source += "\n" * LONGEST_CELL_LINES + "1"
    notebook.metadata.gradacc["executed"] = source_digest(notebook)


def too_few_checked_cells(notebook):
    cell(notebook, "two").metadata["tags"] = []


def checked_cell_without_output(notebook):
    cell(notebook, "two").outputs = []


def picture_without_alt(notebook):
    cell(notebook, "two").outputs.append(html_output('<p><img src="x.png" alt=""></p>'))


def bare_png(notebook):
    cell(notebook, "two").outputs.append(v4.new_output("display_data", {"image/png": "iVBORw0KGgo="}))


def markdown_picture_without_alt(notebook):
    cell(notebook, "sum").source = "## Sums\n\n![](picture.png)"


def no_badge(notebook):
    notebook.cells = [cell for cell in notebook.cells if cell.id != "badge"]


def no_set_up(notebook):
    notebook.cells = [cell for cell in notebook.cells if cell.id != "setup"]
    for number, one in enumerate((cell for cell in notebook.cells if cell.cell_type == "code"), start=1):
        one.execution_count = number


def set_up_not_first(notebook):
    cells = notebook.cells
    first = cells.index(cell(notebook, "setup"))
    cells.append(cells.pop(first))
    for number, one in enumerate((cell for cell in cells if cell.cell_type == "code"), start=1):
        one.execution_count = number


SPOILS = {
    code_changed: "stale",
    never_executed: "never executed",
    executed_out_of_order: "once each, from top to bottom",
    widget_state: "not clean (widget state)",
    widget_view: "not clean (widget views",
    execution_times: "not clean (execution times",
    vscode_metadata: "not clean (metadata of an editor",
    exact_python_version: "not clean (metadata of an editor",
    progress_bar_in_text: "not clean (outputs that differ",
    memory_address: "not clean (outputs that differ",
    same_id_twice: "not clean (cells without an id",
    set_up_cell_changed: "not clean (a set-up or badge cell",
    badge_points_elsewhere: "not clean (a set-up or badge cell",
    ended_in_an_error: "cell two ended in an error, ZeroDivisionError",
    wrote_to_stderr: "cell two wrote to stderr: a warning",
    two_first_level_headings: "2 headings of level 1",
    no_first_level_heading: "0 headings of level 1",
    skipped_heading_level: "level 3 follows one of level 1",
    no_slide_type: "cell sum has no slide type",
    long_cell: "lines of code; the limit is 14",
    too_few_checked_cells: "1 of its cells are tagged",
    checked_cell_without_output: "cell two is tagged nbval-check-output but has no output",
    picture_without_alt: "cell two shows a picture without a text",
    bare_png: "cell two shows a picture without a text",
    markdown_picture_without_alt: "cell sum shows a picture without a text",
    no_badge: "no markdown cell with the id 'badge'",
    no_set_up: "no code cell with the id 'setup'",
    set_up_not_first: "not its first code cell",
}


def test_a_good_notebook_has_no_problem(lesson):
    assert check(lesson()) == []


@pytest.mark.parametrize(("spoil", "words"), SPOILS.items(), ids=[spoil.__name__ for spoil in SPOILS])
def test_each_problem_is_named_and_no_other(lesson, spoil, words):
    problems = check(lesson(spoil))
    assert len(problems) == 1, problems
    assert problems[0].startswith("lesson.ipynb: ")
    assert words in problems[0]


def test_an_expected_error_is_no_problem(lesson):
    def expected_error(notebook):
        ended_in_an_error(notebook)
        cell(notebook, "two").metadata["tags"].append("raises-exception")

    assert check(lesson(expected_error)) == []


def test_a_large_file_is_named(lesson):
    def large(notebook):
        cell(notebook, "two").outputs.append(html_output("x" * LARGEST_FILE_BYTES))

    assert "the limit is 400,000" in check(lesson(large))[0]


@pytest.mark.parametrize(
    "text",
    ["", "no JSON", "[]", "{}", json.dumps({"nbformat": 3, "worksheets": []})],
    ids=["empty", "no_json", "a_list", "no_format", "format_3"],
)
def test_what_is_no_notebook_is_said_in_one_sentence(tmp_path, text):
    file = tmp_path / "odd.ipynb"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"^odd\.ipynb is no notebook of format 4: "):
        check(file)

"""Cleaning keeps what a reader needs, changes nothing twice, and puts the course's own cells in place."""

from authoring.small_lesson import small_lesson
from nbformat import v4

from gradacc_lessons.authoring.cells import badge_cell, setup_cell
from gradacc_lessons.authoring.clean import WIDGET_VIEW, clean, clean_file, source_digest
from gradacc_lessons.authoring.files import read_notebook


def outputs_after_cleaning(*outputs):
    notebook = small_lesson()
    notebook.cells[4].outputs = list(outputs)
    clean(notebook, "lesson.ipynb", None)
    return notebook.cells[4].outputs


def stream(text, name="stdout"):
    return v4.new_output("stream", name=name, text=text)


def test_text_tables_and_static_pictures_stay():
    table = v4.new_output("execute_result", {"text/html": "<table></table>", "text/plain": "n"}, execution_count=1)
    picture = v4.new_output("display_data", {"text/html": '<img alt="a curve" src="data:">'})
    kept = outputs_after_cleaning(stream("2\n"), table, picture)
    assert [output.get("text") or output.data["text/html"] for output in kept] == [
        "2\n",
        "<table></table>",
        '<img alt="a curve" src="data:">',
    ]


def test_a_widget_goes_and_its_static_twin_stays():
    widget = v4.new_output("display_data", {WIDGET_VIEW: {}, "text/plain": "VBox(children=())"})
    twin = v4.new_output("display_data", {"text/html": "<p>the same in words</p>"})
    assert outputs_after_cleaning(widget, twin) == [twin]


def test_pieces_of_a_stream_become_one_and_a_progress_bar_leaves_its_last_state():
    kept = outputs_after_cleaning(stream("1 of 2"), stream("\r2 of 2\ndone\n"), stream("w", "stderr"), stream("end"))
    assert [(output.name, output.text) for output in kept] == [
        ("stdout", "2 of 2\ndone\n"),
        ("stderr", "w"),
        ("stdout", "end"),
    ]


def test_windows_line_ends_are_not_progress():
    assert outputs_after_cleaning(stream("one\r\ntwo\r\n"))[0].text == "one\ntwo\n"


def test_ids_are_kept_and_only_missing_or_repeated_ones_are_given():
    notebook = small_lesson()
    notebook.nbformat_minor = 4
    del notebook.cells[3]["id"]
    notebook.cells[5]["id"] = "two"
    clean(notebook, "lesson.ipynb", None)
    assert [cell.id for cell in notebook.cells] == ["title", "badge", "setup", "cell-004", "two", "cell-006"]
    assert notebook.nbformat_minor == 5


def test_the_fixed_cells_get_the_courses_text():
    notebook = small_lesson()
    clean(notebook, "lesson.ipynb", "owner/name")
    assert notebook.cells[1].source == badge_cell("lesson.ipynb", "owner/name")
    assert "git+https://github.com/owner/name" in notebook.cells[2].source


def test_cleaning_twice_is_cleaning_once(lesson):
    def dirty(notebook):
        notebook.metadata["vscode"] = {}
        notebook.cells[4].metadata["scrolled"] = True

    file = lesson(dirty)
    assert clean_file(file) == [
        "metadata of an editor or a kernel",
        "execution times or an editor's metadata on cells",
    ]
    first = file.read_bytes()
    assert clean_file(file) == []
    assert file.read_bytes() == first


def test_a_different_layout_of_the_same_json_is_put_right(lesson, good_text):
    file = lesson()
    file.write_text(good_text.replace("\n", ""), encoding="utf-8")
    assert clean_file(file) == ["its layout as JSON"]
    assert file.read_text(encoding="utf-8") == good_text


def test_the_digest_follows_the_code_and_not_the_words_or_the_set_up(lesson):
    notebook = read_notebook(lesson())
    before = source_digest(notebook)
    notebook["cells"][0]["source"] = "# Another title"
    notebook["cells"][2]["source"] = setup_cell("9.9.9", "owner/name")
    assert source_digest(notebook) == before
    notebook["cells"][4]["source"] += " "
    assert source_digest(notebook) != before

"""The first page that a learner sees, in a real JupyterLab."""

from browser.accessibility import only_what_sliders_cause

LESSON = "00_start_here.ipynb"


def test_every_cell_runs_and_the_page_is_accessible(lesson):
    assert only_what_sliders_cause(lesson)


def test_the_machine_is_said_to_be_ready(lesson):
    rows = lesson.outputs().locator("tr", has_text="PyTorch")
    assert "OK" in rows.first.inner_text()
    assert "Everything that the course needs works on this machine." in lesson.text_in_outputs()


def test_the_first_slider_moves_the_picture(lesson):
    slider = lesson.slider("Accumulation steps N")
    before = lesson.drawn("a block for each micro-batch")
    slider.press("ArrowRight")
    lesson.until(lambda: lesson.drawn("a block for each micro-batch") != before, "the picture changes")

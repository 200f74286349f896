"""The first page that a learner sees, in a real JupyterLab: nothing is given away before the prediction."""

from browser.accessibility import check_accessibility

LESSON = "00_start_here.ipynb"
PICTURE = "a block for each micro-batch"
SHOWN = "element => element.checkVisibility()"


def live_pictures(lesson):
    return lesson.outputs().locator(".gradacc-explorer img")


def panels(lesson):
    return lesson.outputs().locator(".gradacc-quiz")


def test_every_cell_runs_and_the_page_is_accessible(lesson):
    check_accessibility(lesson)


def test_the_machine_is_said_to_be_ready(lesson):
    rows = lesson.outputs().locator("tr", has_text="PyTorch")
    assert "OK" in rows.first.inner_text()
    assert "Everything that the course needs works on this machine." in lesson.text_in_outputs()


def test_nothing_is_given_away_before_the_prediction(lesson):
    text = lesson.text_in_outputs()
    assert "Predict first, above; or run without a prediction." in text
    assert "Predict first, above; then run this cell again and read what was measured." in text
    assert live_pictures(lesson).count() == 0 and "made 48 updates" not in text
    assert not lesson.picture(PICTURE).evaluate(SHOWN)
    assert panels(lesson).first.locator('[role="status"]').evaluate(SHOWN)  # it is there before it says anything


def test_the_folded_twin_is_opened_by_keyboard_and_by_printing(lesson):
    lesson.page.emulate_media(media="print")
    assert lesson.picture(PICTURE).evaluate(SHOWN)
    lesson.page.emulate_media(media="screen")
    assert not lesson.picture(PICTURE).evaluate(SHOWN)
    summary = lesson.outputs().locator("summary", has_text="open it after your prediction")
    for shown in (True, False):
        summary.press("Enter")
        lesson.until(lambda shown=shown: lesson.picture(PICTURE).evaluate(SHOWN) == shown, "it opens and closes")


def test_enter_predicts_what_was_typed_and_the_picture_comes_by_itself(lesson):
    lesson.number_field("Your answer, in updates:").click()
    lesson.page.keyboard.type("192")  # as fast as can be: no digit may be missing
    lesson.page.keyboard.press("Enter")
    lesson.until(lambda: "You predict 192 updates" in lesson.text_in_outputs(), "the prediction is noted")
    lesson.until(lambda: "made 48 updates" in lesson.text_in_outputs(), "the run goes to its end")
    assert live_pictures(lesson).count() == 1


def test_once_measured_the_question_says_what_came_of_it(lesson):
    lesson.run_cells("measured")
    panel = panels(lesson).first
    lesson.until(lambda: "you predicted 192 updates, measured: 48 updates" in panel.inner_text(), "the panel says it")
    assert "the run counted 48" in panel.inner_text() and "change it" not in panel.inner_text()
    assert panel.get_by_role("button", name="Predict").count() == 0


def test_the_first_slider_moves_the_picture(lesson):
    slider = lesson.slider("Accumulation steps N")
    before = lesson.drawn(PICTURE)
    slider.press("ArrowRight")
    lesson.until(lambda: lesson.drawn(PICTURE) != before, "the picture changes")


def test_one_switch_of_language_reaches_every_question_on_the_page(lesson):
    for name, word in (("Nederlands", "Antwoord"), ("English", "Answer")):
        panels(lesson).last.get_by_role("button", name=name).click()
        lesson.until(
            lambda word=word: all(
                panel.get_by_role("button", name=word).count() or "192" in panel.inner_text()
                for panel in panels(lesson).all()
            ),
            f"every question is in {name}",
        )
    check_accessibility(lesson)

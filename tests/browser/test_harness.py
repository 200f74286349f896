"""The harness itself, on a notebook of three cells: what it says it sees and does is so."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nbformat import v4, write

SLIDER = """
import ipywidgets as widgets
slider = widgets.IntSlider(value=3, min=1, max=9, description="Height")
field = widgets.BoundedIntText(value=3, min=1, max=9, description="Height (number)")
widgets.link((slider, "value"), (field, "value"))
picture, button, clicks = widgets.HTML(), widgets.Button(description="Press me"), widgets.HTML("<p>not pressed</p>")
def draw(change=None):
    dot = "R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="
    picture.value = f'<img alt="height {slider.value}" width="10" src="data:image/gif;base64,{dot}#{slider.value}">'
slider.observe(draw, "value")
button.on_click(lambda _: setattr(clicks, "value", "<p>pressed</p>"))
draw()
widgets.VBox([slider, field, picture, button, clicks])
"""
BARE_PICTURE = """
from matplotlib.figure import Figure
figure = Figure(figsize=(1, 1))
figure.add_subplot()
figure.savefig("dot.png")
from IPython.display import Image
Image("dot.png")
"""


def made(server, name, *sources):
    cells = [v4.new_code_cell(source, id=f"cell-{number}") for number, source in enumerate(sources)]
    write(v4.new_notebook(cells=cells), server.root / name)
    return name


@pytest.fixture(scope="module")
def small(lab, server):
    lab.open(made(server, "small.ipynb", "x = 41", SLIDER, "", "print(x + 1)"))
    lab.run_all()
    return lab


def test_the_outputs_are_read(small):
    assert "42" in small.text_in_outputs()


def test_a_slider_moves_by_keyboard_and_the_picture_follows(small):
    slider = small.slider("Height")
    small.number_field("Height (number)").fill("3")
    small.number_field("Height (number)").press("Enter")
    small.until(lambda: slider.value == 3, "the slider follows the field")
    before = small.drawn("height 3")
    slider.press("ArrowRight", times=2)
    small.picture("height 5").wait_for()
    assert small.drawn("height 5") != before
    assert small.number_field("Height (number)").input_value() == "5"


def test_a_slider_moves_by_mouse(small):
    small.slider("Height").drag(1.0)
    small.picture("height 9").wait_for()
    small.slider("Height").drag(0.0)
    small.picture("height 1").wait_for()


def test_a_button_is_pressed(small):
    small.button("Press me").click()
    small.until(lambda: "\npressed" in small.text_in_outputs(), "the button's text appears")


def test_axe_finds_the_slider_that_has_no_name_and_nothing_else(small):
    assert [violation["id"] for violation in small.axe()] == ["aria-input-field-name"]


def test_a_restarted_kernel_has_forgotten_everything(small):
    small.restart_kernel()
    small.run_cells("cell-3")
    small.until(lambda: "name 'x' is not defined" in small.text_in_outputs(), "the cell fails")


def test_outputs_are_cleared(small):
    small.clear_outputs()
    assert small.text_in_outputs() == ""


def test_a_failing_cell_is_named_and_not_waited_for(lab, server):
    lab.open(made(server, "failing.ipynb", "1 / 0", "print('never')"))
    with pytest.raises(AssertionError, match="ZeroDivisionError: division by zero"):
        lab.run_all()


def test_axe_finds_a_picture_without_a_text_in_its_place(lab, server):
    lab.open(made(server, "bare.ipynb", BARE_PICTURE))
    lab.run_all()
    assert "image-alt" in [violation["id"] for violation in lab.axe()]


STARTED = """
import signal, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from browser.server import Server
root = Path(sys.argv[2])
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell takes it away from what runs in its background
print(Server(root, root).process.pid, flush=True)
time.sleep(60)
"""


def test_the_server_does_not_outlive_the_tests_whether_terminated_or_interrupted(tmp_path):
    processes = {}
    for number in (signal.SIGTERM, signal.SIGINT):  # both start at once
        folder = tmp_path / number.name
        folder.mkdir()
        command = [sys.executable, "-c", STARTED, str(Path(__file__).parents[1]), str(folder)]
        processes[number] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for number, process in processes.items():
        with process:
            pid = int(process.stdout.readline())
            process.send_signal(number)
            assert process.wait(30) != 0
        assert not alive(pid)


def alive(pid):
    """Whether the process runs; one that has ended may take a moment to be collected."""
    for _ in range(20):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.1)
    return True

"""Sliders over a real run: controls, a picture that moves, a sentence, and the numbers behind them.

A callback never trains: on older kernels that would block every other slider until it ends, and on current
JupyterLab callbacks may run beside the main thread. It only puts the wanted run into a mailbox, where the latest
wins; one worker thread takes it out, reads the experiment's rows and looks between two rows whether a newer run
waits. One lock guards mailbox, state and figure.
"""

import html
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Event, RLock, Thread
from typing import Any, Protocol

import ipywidgets as widgets
import pandas as pd

from gradacc_lessons.ui.controls import STYLE, Control, stylesheet
from gradacc_lessons.ui.figure import LiveFigure
from gradacc_lessons.ui.progress import wait_with_progress
from gradacc_lessons.ui.static import StaticTwin, picture_html

SECONDS_BETWEEN_PICTURES = 0.05
PREDICT_FIRST = "Predict first, above; or run without a prediction."
RUN_UNPREDICTED, RUN_AGAIN = "Run without a prediction", "Run again"


@dataclass(frozen=True)
class Run:
    """One run of an experiment, ready to start."""

    rows: Callable[[], Iterator[dict[str, Any]]]
    """Starts it; yields one row per update (or per point)."""
    total: int
    """How many rows that will be, for the progress bar."""
    unit: str = "update"
    """What one row is, in the singular."""


class Prediction(Protocol):
    """What the learner expects, and a way to hear of it."""

    def __call__(self) -> Any:
        """The prediction; None as long as there is none."""

    def on_change(self, told: Callable[[], None]) -> None:
        """Call `told()` whenever there may be another one."""


class Explorer:
    """Controls -> `plan(**values)` -> a Run -> its rows in `figure` and in words.

    `plan` says in a ValueError what is impossible about a combination of values. `table` makes the small table of
    the static twin from the data. `.set`, `.wait`, `.data`, `.sentence` and `.static` let a test or a reader do
    and see what the widgets do and show.

    With a `prediction` it waits: it shows its picture once there is one, or once the learner asks for it with a
    button or a control. Until then `.data` and `.static` come of a run aside, which shows nothing.
    """

    def __init__(
        self,
        controls: Sequence[Control],
        plan: Callable[..., Run],
        figure: Callable[[], LiveFigure],
        table: Callable[[pd.DataFrame], pd.DataFrame],
        prediction: Prediction | None = None,
    ) -> None:
        self._controls = {control.name: control for control in controls}
        self._values = {control.name: control.value for control in controls}
        self._first_values = dict(self._values)
        self._plan, self._new_figure, self._table = plan, figure, table
        self._prediction, self._predicted = prediction, None
        self._begun = self._displayed = False
        self._figure = figure()
        self._lock = RLock()
        self._wanted: Run | None = None
        self._working = self._complete = False
        self._stop, self._idle = Event(), Event()
        self._idle.set()
        self._rows: list[dict[str, Any]] = []
        self._error: BaseException | None = None
        self.sentence = ""
        self.widget = self._build()
        for control in controls:
            control.on_change(self._changed)
        if prediction is not None:
            prediction.on_change(lambda: self._guarded(self._hear))

    # What a program sees

    @property
    def data(self) -> pd.DataFrame:
        """The rows of the latest run, as far as it has come; while it waits for a prediction, those of `measure`."""
        if self.waiting:
            return self.measure()
        with self._lock:
            return pd.DataFrame(list(self._rows))

    @property
    def values(self) -> dict[str, Any]:
        """The controls' values by name."""
        return dict(self._values)

    @property
    def running(self) -> bool:
        """Whether a run is going on."""
        return not self._idle.is_set()

    @property
    def waiting(self) -> bool:
        """Whether it waits for a prediction, and has shown nothing yet."""
        return not self._begun and self._prediction is not None and self._prediction() is None

    def measure(self, **values: Any) -> pd.DataFrame:
        """All rows of a run with these values, the others as they stand, made aside: nothing on the page moves."""
        with self._lock:
            run = self._planned(values)[1]
        return pd.DataFrame(list(run.rows()))

    def set(self, **values: Any) -> None:
        """Move controls, as a learner would. ValueError, in a sentence, for a value that is not possible."""
        with self._lock:
            try:
                checked, run = self._planned(values)
            except ValueError as error:
                self._say(str(error))
                raise
            self._values |= checked
            for name, value in checked.items():
                self._controls[name].show(value)
            self._post(run)

    def start(self) -> None:
        """Run with the values as they stand."""
        with self._lock:
            self._post(self._plan(**self._values))

    def stop(self) -> None:
        """End the run after the row it is at; what it has shown stays."""
        self._stop.set()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until nothing runs. TimeoutError after `timeout` seconds; an error of the run is raised here.

        One that waits for a prediction is started.
        """
        if self.waiting:
            self.start()
        if not self._idle.wait(timeout):
            raise TimeoutError(f"the run was still going after {timeout} seconds")
        if self._error is not None:
            raise self._error

    def static(self, **values: Any) -> StaticTwin:
        """The finished picture, its sentence and a small table, without widgets.

        It shows what the text around it speaks of, wherever the learner has moved the controls to: the values with
        which they began, or those that are given. Where the controls stand there, it waits for the run that is going
        on, and a stopped one is run again. Folded as long as there is something to predict.
        """
        wanted = self._first_values | values
        if self.waiting or wanted != self._values:
            data = self.measure(**wanted)
        else:
            self._finish()
            data = self.data
        figure = self._new_figure()
        sentence = figure.draw(data)
        folded = self._prediction is not None and self._prediction() is None
        return StaticTwin(picture_html(figure, sentence), sentence, self._table(data), folded)

    def _finish(self) -> None:
        wait_with_progress(self._idle, self._progress_text)
        if not self._complete:
            self.start()
            wait_with_progress(self._idle, self._progress_text)
        self.wait()

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display(self.widget)
        self._displayed = True
        if self.waiting:
            self._offer(RUN_UNPREDICTED, running=False)
            self._announce(PREDICT_FIRST)
        elif not self.running and not self._complete:
            self._guarded(self.start)

    # What a learner sees

    def _build(self) -> widgets.Widget:
        self._picture, self._words, self._state, self._message = (widgets.HTML() for _ in range(4))
        self._bar = widgets.IntProgress(description="Progress", style={"description_width": "initial"})
        self._run = widgets.Button(description=RUN_AGAIN, layout=widgets.Layout(width="auto"))
        self._stop_button = widgets.Button(description="Stop")
        self._run.on_click(lambda _: self._guarded(self.start))
        self._stop_button.on_click(lambda _: self.stop())
        rows = [control.widget for control in self._controls.values()]
        line = widgets.HBox([self._run, self._stop_button, self._bar, self._state])
        line.layout.flex_flow = "row wrap"
        outputs = [self._message, self._picture, self._words]
        box = widgets.VBox([stylesheet(STYLE), *rows, line, *outputs])
        box.add_class("gradacc-explorer")
        return box

    def _hear(self) -> None:
        """Another prediction: draw it, if the picture is on the page at all."""
        if self._displayed and self._prediction is not None and self._prediction() != self._predicted:
            self.start()

    def _changed(self, name: str, value: Any) -> None:
        self._guarded(lambda: self._take(name, value))

    def _take(self, name: str, value: Any) -> None:
        with self._lock:
            if value == self._values[name]:
                return  # slider and field tell each other
            control = self._controls[name]
            try:
                checked = control.check(value)
            except ValueError as error:
                control.show(self._values[name])
                self._say(str(error))
                return
            self._values[name] = checked
            control.show(checked)
            try:
                run = self._plan(**self._values)
            except ValueError as error:
                self.stop()
                self._complete = False
                self._say(f"{error}. The picture still shows the run before.")
                return
            self._post(run)

    def _guarded(self, act: Callable[[], None]) -> None:
        """Errors in callbacks vanish in Jupyter: show them here."""
        try:
            act()
        except Exception as error:
            self._say(f"This control met an error. {type(error).__name__}: {error}")
            raise

    def _planned(self, values: dict[str, Any]) -> tuple[dict[str, Any], Run]:
        checked = {name: self._control(name).check(value) for name, value in values.items()}
        return checked, self._plan(**(self._values | checked))

    def _control(self, name: str) -> Control:
        if name not in self._controls:
            raise ValueError(f"there is no control {name!r}; there are {', '.join(self._controls)}")
        return self._controls[name]

    def _say(self, message: str) -> None:
        self._message.value = f'<p role="alert"><b>Note:</b> {html.escape(message)}</p>' if message else ""

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self._error = error
            self._say(f"This run ended with an error. {type(error).__name__}: {error}")
            self._announce("Stopped by an error.")

    # The mailbox and its one worker

    def _post(self, run: Run) -> None:
        self._wanted = run
        self._predicted = self._prediction() if self._prediction is not None else None
        self._error = None
        self._begun, self._complete = True, False
        self._offer(RUN_AGAIN, running=True)
        self._say("")
        self._stop.clear()
        self._idle.clear()
        if not self._working:
            self._working = True
            Thread(target=self._work, daemon=True, name="explorer").start()

    def _work(self) -> None:
        while (run := self._next_run()) is not None:
            try:
                self._consume(run)
            except BaseException as error:  # also SystemExit: whoever waits must hear of it
                self._fail(error)

    def _next_run(self) -> Run | None:
        with self._lock:
            run, self._wanted = self._wanted, None
            if run is None:
                self._working = False
                self._idle.set()
            else:
                self._rows = []
            return run

    def _consume(self, run: Run) -> None:
        began, next_picture, shown = time.monotonic(), 0.0, 0
        self._announce("Running.")
        for row in run.rows():
            with self._lock:
                if self._wanted is not None or self._stop.is_set():
                    break
                self._rows.append(row)
            if time.monotonic() >= next_picture:
                self._paint(run)
                shown = len(self._rows)
                next_picture = time.monotonic() + SECONDS_BETWEEN_PICTURES
        with self._lock:
            if self._wanted is not None:
                return
            self._complete = not self._stop.is_set()
        if shown < len(self._rows):
            self._paint(run)
        seconds = time.monotonic() - began
        done = f"{counted(len(self._rows), run.unit)} in {seconds:.1f} s."
        self._announce(f"Done: {done}" if self._complete else f"Stopped after {done}")

    def _paint(self, run: Run) -> None:
        with self._lock:
            if not self._rows:
                return
            self.sentence = self._figure.show(self.data)
            self._picture.value = picture_html(self._figure, self.sentence)
            self._words.value = f"<p>{html.escape(self.sentence)}</p>"
            self._bar.max = run.total
            self._bar.value = len(self._rows)

    def _offer(self, name: str, *, running: bool) -> None:
        """Call the button that runs `name`; before the first run there is nothing to stop or to follow."""
        self._run.description = name
        for part in (self._stop_button, self._bar):
            part.layout.display = None if running else "none"

    def _announce(self, words: str) -> None:
        self._state.value = f'<span role="status">{html.escape(words)}</span>'

    def _progress_text(self) -> str:
        return f"{len(self._rows)} of {self._bar.max}"


def counted(number: int, unit: str) -> str:
    """The number with its unit, in the singular or the plural: 1 update, 1,024 micro-batches."""
    plural = f"{unit}es" if unit.endswith("ch") else f"{unit}s"
    return f"{number:,} {unit if number == 1 else plural}"

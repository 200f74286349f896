"""Sliders over a real run: controls, a picture that moves, a sentence, and the numbers behind them.

A callback never trains: on older kernels that would block every other slider until it ends, and on current
JupyterLab callbacks may run beside the main thread. It only gives the wanted run to the explorer's worker.
"""

import html
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import ipywidgets as widgets
import pandas as pd

from gradacc_lessons.cell import supersede
from gradacc_lessons.ui.controls import STYLE, Control, stylesheet
from gradacc_lessons.ui.figure import LiveFigure
from gradacc_lessons.ui.progress import SECONDS_OF_SILENCE, wait_with_progress
from gradacc_lessons.ui.static import StaticTwin, picture_html
from gradacc_lessons.ui.worker import Run, Worker

PREDICT_FIRST = "Predict first, above; or run without a prediction."
RUN_UNPREDICTED, RUN_AGAIN = "Run without a prediction", "Run again"
OLD_PICTURE, NO_PICTURE = "The picture still shows the run before.", "It runs as soon as the values are possible."


class Prediction(Protocol):
    """What the learner expects, and a way to hear of it."""

    def __call__(self) -> Any:
        """The prediction; None as long as there is none."""

    def on_change(self, told: Callable[[], None]) -> Callable[[], None]:
        """Call `told()` whenever there may be another one, until what this returns is called."""


class Impossible(ValueError):
    """These values cannot go together; the explorer shows its sentence already."""


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
        self._begun = False
        self._unsubscribe: Callable[[], None] | None = None
        self._figure = figure()
        self._worker = Worker(self._paint, self._announce, self._fail)
        self._lock = self._worker.lock
        self.sentence = ""
        self.widget = self._build()
        for control in controls:
            control.on_change(self._changed)

    # What a program sees

    @property
    def data(self) -> pd.DataFrame:
        """The rows of the latest run, as far as it has come; while it waits for a prediction, those of `measure`."""
        if self.waiting:
            return self.measure()
        with self._lock:
            return pd.DataFrame(list(self._worker.rows))

    @property
    def values(self) -> dict[str, Any]:
        """The controls' values by name."""
        return dict(self._values)

    @property
    def running(self) -> bool:
        """Whether a run is going on."""
        return self._worker.running

    @property
    def waiting(self) -> bool:
        """Whether it waits for a prediction, and has shown nothing yet."""
        return not self._begun and self._prediction is not None and self._prediction() is None

    def measure(self, **values: Any) -> pd.DataFrame:
        """All rows of a run with these values, the others as they stand, made aside: nothing on the page moves."""
        with self._lock:
            run = self._plan(**(self._values | self._checked(values)))
        return pd.DataFrame(list(self._aside(run)))

    def _aside(self, run: Run) -> Iterator[dict[str, Any]]:
        """The rows of a run that the page does not show; it only says how far it has come, if that takes long."""
        before, said, began = self._state.value, "", time.monotonic()
        for done, row in enumerate(run.rows(), start=1):
            yield row
            if time.monotonic() - began > SECONDS_OF_SILENCE:
                self._announce(f"A run aside: {done} of {run.total}.")
                said = self._state.value
        if said and self._state.value == said:  # nothing else has been said since
            self._state.value = before

    def set(self, **values: Any) -> None:
        """Move controls and run, as a learner would.

        ValueError, in a sentence, for values that are not possible or cannot go together; then no control moves.
        """
        with self._lock:
            try:
                checked = self._checked(values)
            except ValueError as error:
                self._say(str(error))
                raise
            run = self._planned(self._values | checked)
            self._values |= checked
            for name, value in checked.items():
                self._controls[name].show(value)
            self._post(run)

    def start(self) -> None:
        """Run with the values as they stand. ValueError, in a sentence, if they cannot go together."""
        with self._lock:
            self._post(self._planned(self._values))

    def stop(self) -> None:
        """End the run after the row it is at; what it has shown stays."""
        self._worker.stop()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until nothing runs. TimeoutError after `timeout` seconds; an error of the run is raised here.

        One that waits for a prediction is started.
        """
        if self.waiting:
            self.start()
        if not self._worker.wait(timeout):
            raise TimeoutError(f"the run was still going after {timeout} seconds")
        if self._worker.error is not None:
            raise self._worker.error

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
        wait_with_progress(self._worker.wait, self._progress_text)
        if not self._worker.complete:
            self.start()
            wait_with_progress(self._worker.wait, self._progress_text)
        self.wait()

    def _ipython_display_(self) -> None:
        from IPython.display import display

        supersede(("explorer", self._new_figure), self._retire)
        display(self.widget)
        if self._prediction is not None and self._unsubscribe is None:
            self._unsubscribe = self._prediction.on_change(lambda: self._guarded(self._hear, raises=False))
        if self.waiting:
            self._offer(RUN_UNPREDICTED, running=False)
            self._announce(PREDICT_FIRST)
        elif not self.running and not self._worker.complete:
            self._guarded(self.start)

    def _retire(self) -> None:
        """Its cell has been run again and shows another one: train no more for a page that nobody sees."""
        unsubscribe, self._unsubscribe = self._unsubscribe, None
        if unsubscribe is not None:
            unsubscribe()
        self.stop()

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
        """Another prediction: draw it."""
        if self._prediction is not None and self._prediction() != self._predicted:
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
                run = self._planned(self._values)
            except Impossible:
                self.stop()
                self._worker.complete = False
                raise
            self._post(run)

    def _guarded(self, act: Callable[[], None], *, raises: bool = True) -> None:
        """Errors in callbacks vanish in Jupyter: show them here. What cannot go together is no error.

        Not raised where a listener's error would be another's: of who gave the prediction.
        """
        try:
            act()
        except Impossible:
            pass
        except Exception as error:
            self._say(f"This control met an error. {type(error).__name__}: {error}")
            if raises:
                raise

    def _checked(self, values: dict[str, Any]) -> dict[str, Any]:
        return {name: self._control(name).check(value) for name, value in values.items()}

    def _planned(self, values: dict[str, Any]) -> Run:
        """The run of these values; Impossible, and said on the page, if they cannot go together."""
        try:
            return self._plan(**values)
        except ValueError as error:
            self._say(f"{error}. {OLD_PICTURE if self._picture.value else NO_PICTURE}")
            raise Impossible(str(error)) from error

    def _control(self, name: str) -> Control:
        if name not in self._controls:
            raise ValueError(f"there is no control {name!r}; there are {', '.join(self._controls)}")
        return self._controls[name]

    def _post(self, run: Run) -> None:
        self._predicted = self._prediction() if self._prediction is not None else None
        self._begun = True
        self._offer(RUN_AGAIN, running=True)
        self._say("")
        self._worker.post(run)

    def _say(self, message: str) -> None:
        self._message.value = f'<p role="alert"><b>Note:</b> {html.escape(message)}</p>' if message else ""

    def _fail(self, error: BaseException) -> None:
        self._say(f"This run ended with an error. {type(error).__name__}: {error}")
        self._announce("Stopped by an error.")

    def _paint(self, run: Run) -> None:
        with self._lock:
            if not self._worker.rows:
                return
            self.sentence = self._figure.show(self.data)
            self._picture.value = picture_html(self._figure, self.sentence)
            self._words.value = f"<p>{html.escape(self.sentence)}</p>"
            self._bar.max = run.total
            self._bar.value = len(self._worker.rows)

    def _offer(self, name: str, *, running: bool) -> None:
        """Call the button that runs `name`; before the first run there is nothing to stop or to follow."""
        self._run.description = name
        for part in (self._stop_button, self._bar):
            part.layout.display = None if running else "none"

    def _announce(self, words: str) -> None:
        self._state.value = f'<span role="status">{html.escape(words)}</span>'

    def _progress_text(self) -> str:
        return f"{len(self._worker.rows)} of {self._bar.max}"

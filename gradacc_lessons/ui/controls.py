"""What a learner moves: a slider with a number field beside it, or a choice from a list.

Only widgets and arguments that ipywidgets 7.7.1 and 8 share. A slider has no accessible name in either, so each
is paired with a labelled number field that says the same and can be typed into.
"""

from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets

LABEL_WIDTH = "150px"
STYLE = """<style>
.gradacc-number > .widget-label { position: absolute; width: 1px; height: 1px; overflow: hidden; white-space: nowrap;
  clip-path: inset(50%); }
.gradacc-explorer .widget-html-content > p { line-height: 1.45; margin: 4px 0; }
.gradacc-explorer .widget-dropdown > select, .gradacc-quiz .widget-dropdown > select { appearance: auto;
  background-image: none; }
</style>"""
"""The field beside a slider needs a name for who hears the page; who sees it reads the slider's. The arrow that
ipywidgets draws on a list is black on every theme; the browser's own has the colour of the text."""


def stylesheet(style: str) -> widgets.HTML:
    """Something without a size that brings `style` onto the page."""
    return widgets.HTML(style, layout=widgets.Layout(display="none"))


class Control:
    """One named value. `widget` is what is shown; `on_change` is told whenever a learner changes the value."""

    def __init__(self, name: str, widget: widgets.Widget, source: widgets.Widget) -> None:
        self.name = name
        self.widget = widget
        self._source = source

    @property
    def value(self) -> Any:
        """The value as it stands."""
        return self._source.value

    def check(self, value: Any) -> Any:
        """`value` if this control can take it; ValueError says in a sentence what it can take."""
        raise NotImplementedError

    def show(self, value: Any) -> None:
        """Move the control to `value`, which has been checked."""
        self._source.value = value

    def on_change(self, told: Callable[[str, Any], None]) -> None:
        """Call `told(name, value)` on each change."""
        self._source.observe(lambda change: told(self.name, change["new"]), names="value")


class NumberSlider(Control):
    """A whole number between `least` and `most`, on a slider and in a field.

    The field takes any number, so that an impossible one is answered with a sentence and not silently clipped.
    """

    def __init__(self, name: str, label: str, least: int, most: int, value: int) -> None:
        self.label, self.least, self.most = label, least, most
        style = {"description_width": LABEL_WIDTH}
        self.slider = widgets.IntSlider(
            value=value, min=least, max=most, description=label, readout=False, style=style,
            layout=widgets.Layout(width="420px"),
        )  # fmt: skip
        self.field = widgets.IntText(
            value=value, description=f"{label} (number)", layout=widgets.Layout(width="80px"),
        )  # fmt: skip
        self.field.add_class("gradacc-number")
        super().__init__(name, widgets.HBox([self.slider, self.field], layout=_WRAP), self.slider)

    def check(self, value: Any) -> int:
        """A whole number in range."""
        if isinstance(value, bool) or not isinstance(value, int) or not self.least <= value <= self.most:
            raise ValueError(f"{self.label} must be a whole number from {self.least} to {self.most}; you gave {value}")
        return value

    def show(self, value: Any) -> None:
        """Move slider and field."""
        self.slider.value = value
        self.field.value = value

    def on_change(self, told: Callable[[str, Any], None]) -> None:
        """Slider and field both report."""
        for part in (self.slider, self.field):
            part.observe(lambda change: told(self.name, change["new"]), names="value")


class Choice(Control):
    """One of a few named values, in a drop-down list."""

    def __init__(self, name: str, label: str, options: Sequence[tuple[str, Any]], value: Any) -> None:
        self.label = label
        self.options = list(options)
        dropdown = widgets.Dropdown(
            options=self.options, value=self.check(value), description=label,
            style={"description_width": LABEL_WIDTH}, layout=widgets.Layout(width="420px"),
        )  # fmt: skip
        super().__init__(name, dropdown, dropdown)

    def check(self, value: Any) -> Any:
        """One of the options' values."""
        allowed = [option for _, option in self.options]
        if value not in allowed:
            raise ValueError(f"{self.label} must be one of {', '.join(map(repr, allowed))}; you gave {value!r}")
        return value


_WRAP = widgets.Layout(flex_flow="row wrap")

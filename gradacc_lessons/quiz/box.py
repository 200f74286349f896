"""The box around the view: how it looks on the page, what stands in its place without widgets, how parts leave it."""

import ipywidgets as widgets

# ipywidgets gives an option one line of fixed height and cuts off the rest. Colours are the theme's own.
STYLE = """<style>
.gradacc-quiz { max-width: 52em; padding: 4px 8px; }
.gradacc-quiz .widget-radio-box label { height: auto; line-height: 1.45; white-space: normal; padding: 3px 0 3px 24px;
  position: relative; }
.gradacc-quiz .widget-radio-box input { position: absolute; left: 0; top: 5px; height: auto; float: none; }
.gradacc-quiz .widget-checkbox { line-height: 1.45; margin: 0; }
.gradacc-quiz .widget-checkbox > label.widget-label-basic { display: flex; align-items: baseline; line-height: 1.45;
  padding: 3px 0; }
.gradacc-quiz .widget-checkbox input[type='checkbox'] { flex-grow: 0; align-self: flex-start; margin-top: 4px; }
.gradacc-quiz .widget-checkbox span { white-space: normal; }
.gradacc-quiz .widget-text > label, .gradacc-quiz .widget-dropdown > label { white-space: normal; }
.gradacc-quiz .widget-html-content { line-height: 1.45; white-space: normal; }
.gradacc-quiz pre { white-space: pre-wrap; overflow-wrap: break-word; word-break: normal; line-height: 1.35;
  padding: 6px; margin: 4px 0; }
.gradacc-quiz .widget-toggle-buttons { width: auto; flex-flow: row wrap; align-items: center; }
.gradacc-quiz .widget-toggle-button.mod-active { font-weight: bold; outline: 2px solid currentColor;
  outline-offset: -2px; }
.gradacc-quiz .gradacc-line { display: block; padding-left: 5ch; text-indent: -5ch; }
.gradacc-quiz .gradacc-head { font-weight: bold; }
.gradacc-quiz .gradacc-said { border-left: 4px solid currentColor; padding: 4px 10px; margin: 4px 0; }
.gradacc-quiz .gradacc-said:empty { border: 0; padding: 0; margin: 0; }
.gradacc-quiz code { font-family: var(--jp-code-font-family, monospace); font-size: 0.95em; padding: 0 3px;
  border-radius: 3px; background: color-mix(in srgb, currentColor 12%, transparent); }
.gradacc-quiz .widget-dropdown > select { font-family: var(--jp-code-font-family, monospace); }
</style>"""


class QuizBox(widgets.VBox):  # type: ignore[misc]
    """The whole view; where widgets are not drawn (GitHub, print) a few words stand in its place."""

    stands_for = ""

    def __repr__(self) -> str:
        return self.stands_for


def close(widget: widgets.Widget) -> None:
    """Take a control out of the page and the kernel, with what belongs to it alone."""
    for child in getattr(widget, "children", ()):
        close(child)
    for part in (widget.layout, getattr(widget, "style", None)):
        if part is not None:
            part.close()
    widget.close()

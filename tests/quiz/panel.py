"""What tests do with a quiz in a notebook: find its controls, press its buttons, read what it says."""

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import ipywidgets as widgets

from gradacc_lessons.quiz.view import QuizView


def every(widget: widgets.Widget) -> Iterator[widgets.Widget]:
    yield widget
    for child in getattr(widget, "children", ()):
        yield from every(child)


def one(view: QuizView, kind: type) -> Any:
    """The only control of that kind (the language switch is none)."""
    (found,) = [widget for widget in every(view._place) if isinstance(widget, kind)]
    return found


def press(view: QuizView, name: str) -> None:
    button = view.buttons[name]
    assert button.layout.display != "none", f"{name} is not shown"
    button.click()


def shown(view: QuizView) -> set[str]:
    return {name for name, button in view.buttons.items() if button.layout.display != "none"}


def said(view: QuizView) -> str:
    assert view._status.value.count('role="status"') == 1
    return text_of(view._status.value)


def text_of(html: str) -> str:
    parts: list[str] = []
    parser = HTMLParser()
    parser.handle_data = parts.append  # type: ignore[method-assign]
    parser.feed(html)
    return " ".join(" ".join(parts).split())

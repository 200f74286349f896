"""A page of HTML that needs nothing beside itself: no script, no font, no picture from elsewhere."""

from collections.abc import Iterable, Sequence
from html import escape

from gradacc_lessons.text import Language

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fff; margin: 0 auto; max-width: 60rem;
  padding: 1.5rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.35rem; margin-top: 2.2rem; } h3 { font-size: 1.05rem; margin-bottom: 0; }
table { border-collapse: collapse; margin: 1rem 0; } caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { text-align: left; vertical-align: top; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid #d0d0d0; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: #f4f4f4; padding: .6rem; white-space: pre-wrap; overflow-wrap: anywhere; }
code { background: #f4f4f4; padding: 0 .2rem; } pre code { padding: 0; }
img { max-width: 100%; height: auto; } dt { font-weight: 600; } dd { margin: 0 0 .5rem 0; }
.right { border-left: 4px solid #0072b2; } .wrong { border-left: 4px solid #d55e00; }
.partly { border-left: 4px dashed #d55e00; } .open { border-left: 4px dotted #6b6b6b; }
.right, .wrong, .partly, .open { padding-left: .8rem; margin: 1.2rem 0; }
@media print { .right, .wrong, .partly, .open { break-inside: avoid; } }
"""


def page(title: str, language: Language, body: str) -> bytes:
    """The page with this title; `body` is HTML, and whoever made it has escaped what stands in it."""
    return (
        f'<!DOCTYPE html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    ).encode()


def table(caption: str, heading: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table of HTML cells; `numbers` are the columns that are set to the right. The first column names its row."""

    def kind(column: int) -> str:
        return ' class="number"' if column in numbers else ""

    head = "".join(f'<th scope="col"{kind(at)}>{escape(name)}</th>' for at, name in enumerate(heading))
    body = []
    for row in rows:
        cells = [f"<td{kind(at)}>{cell}</td>" for at, cell in enumerate(row)][1:]
        body.append(f'<tr><th scope="row"{kind(0)}>{row[0]}</th>{"".join(cells)}</tr>')
    return f"<table>\n<caption>{escape(caption)}</caption>\n<tr>{head}</tr>\n{chr(10).join(body)}\n</table>"


def listing(lines: list[str], *, numbered: bool) -> str:
    """Code as HTML, with the numbers of its lines if they are asked about."""
    shown = [f"{number:>2}  {line}" for number, line in enumerate(lines, start=1)] if numbered else lines
    # Not by `html`, which makes <br> of the ends of lines.
    return f"<pre>{escape(chr(10).join(shown))}</pre>"

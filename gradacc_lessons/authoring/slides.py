"""A lecture from a lesson: slides for a browser, by nbconvert and reveal.js.

The cells' slide types say what is a slide, a fragment, a note for the speaker or nothing. nbconvert's own page loads
five things from the internet; this one needs reveal.js only, and with a copy of it at hand nothing at all: the copy
is put into the page. (The lessons have no TeX and no diagrams, which the other four are for.)
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from gradacc_lessons.course import course_folder
from gradacc_lessons.text import Text

STYLES, SCRIPTS = ("dist/reveal.css", "dist/theme/simple.css"), ("dist/reveal.js", "plugin/notes/notes.js")
FOUND_AT = Path("node_modules") / "reveal.js"
"""Where npm puts it, below the folder that one is in."""
_OTHER_FILES = re.compile(r"@import[^;]*;")
"""What a style asks for beside itself: fonts, for which there are others."""
TEMPLATE = """
{%- extends 'reveal/index.html.j2' -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_css -%}
<style>.reveal .slides section { max-height: 700px; overflow-y: auto; text-align: left; }
.reveal pre { width: 100%; box-shadow: none; } .reveal img { max-height: 480px; }</style>
{%- endblock -%}
{%- block footer_js -%}
{{ resources.gradacc_scripts }}
<script>
Reveal.initialize({ hash: true, slideNumber: true, width: 1100, height: 720, plugins: [RevealNotes] });
</script>
{%- endblock footer_js -%}
"""


@dataclass(frozen=True)
class Slides:
    """A lecture that was written."""

    file: Path
    """Where."""
    slides: int
    """How many slides it has."""
    notes: int
    """How many of them have notes for the speaker."""
    offline: bool
    """Whether reveal.js is in it."""

    def text(self) -> Text:
        """What was written and what it needs."""
        needs = Text("Everything is in the file.", "Alles zit in het bestand.")
        if not self.offline:
            needs = Text(
                "The browser loads reveal.js from the internet to show it; `npm install reveal.js@5` here, and the "
                "same command again, puts it into the file.",
                "De browser haalt reveal.js van internet om ze te tonen; met `npm install reveal.js@5` hier, en dan "
                "weer deze opdracht, komt het in het bestand.",
            )
        return Text(
            f"{self.file}: {self.slides} slides, {self.notes} with notes (press S to see them). {needs.en}",
            f"{self.file}: {self.slides} slides, {self.notes} met notities (druk op S om ze te zien). {needs.nl}",
        )


def write_slides(lesson: str, to: Path | None = None, reveal: Path | None = None) -> Slides:
    """Write the lecture of a lesson, named as quizzes are ("01" or "01_accumulate").

    `reveal` is a folder with reveal.js 4 or 5; without it, one that npm has put below the current folder.
    ValueError if there is no such lesson, or no reveal.js in the folder that is named.
    """
    notebook = _notebook(lesson)
    if reveal is None and FOUND_AT.is_dir():
        reveal = FOUND_AT
    page = _page(notebook, reveal)
    file = to or Path(f"{notebook.stem}.slides.html")
    file.write_text(page, encoding="utf-8")
    return Slides(file, _slides(notebook), page.count('<aside class="notes">'), reveal is not None)


def _notebook(lesson: str) -> Path:
    notebooks = sorted(course_folder("notebooks").glob("[0-9][0-9]_*.ipynb"))
    for each in notebooks:
        if lesson in (each.stem, each.name) or lesson.zfill(2) == each.stem[:2]:
            return each
    known = ", ".join(each.stem for each in notebooks)
    raise ValueError(f"there is no lesson {lesson!r}; the lessons there are: {known}")


def _page(notebook: Path, reveal: Path | None) -> str:
    from nbconvert import SlidesExporter

    exporter = SlidesExporter(raw_template=TEMPLATE)
    online = exporter.reveal_url_prefix
    if reveal is None:
        scripts = "".join(f'<script src="{online}/{name}"></script>' for name in SCRIPTS)
    else:
        scripts = "".join(f"<script>{_read(reveal, name)}</script>" for name in SCRIPTS)
    page, _ = exporter.from_filename(str(notebook), resources={"gradacc_scripts": scripts})
    if reveal is None:
        return str(page)
    for name in STYLES:
        style = f"<style>{_OTHER_FILES.sub('', _read(reveal, name))}</style>"
        (link,) = re.findall(rf'<link[^>]* href="{re.escape(online)}/{name}"[^>]*>', page)
        page = page.replace(link, style)
    return str(page)


def _read(reveal: Path, name: str) -> str:
    file = reveal / name
    if not file.is_file():
        raise ValueError(f"{reveal} does not hold reveal.js 4 or 5: there is no {name} in it")
    return file.read_text(encoding="utf-8").replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _slides(notebook: Path) -> int:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return sum(cell["metadata"]["slideshow"]["slide_type"] in ("slide", "subslide") for cell in cells)

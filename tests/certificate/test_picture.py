"""The picture: its code can be read, its words fit, and what a name holds is never more than a name."""

import io
import subprocess
import sys
import zlib
from base64 import b32encode
from hashlib import sha256
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
import segno
import zxingcpp
from certificate.made import AT, made
from matplotlib.patches import PathPatch
from PIL import Image, ImageFilter

from gradacc_lessons.certificate import compact, fonts, picture, tokens
from gradacc_lessons.certificate.panel import PIXEL, draw_code
from gradacc_lessons.certificate.problem import CertificateError

SVG = "{http://www.w3.org/2000/svg}"
MANY = {f"{number:02}_a_lesson_with_a_rather_long_name_for_what_it_is": 0.9 for number in range(24)}
NAMES = {
    "plain": "Ada Lovelace",
    "long": "Maximiliaan " * 16 + "Alexand",
    "wide": "W" * 200,
    "accents": "Jörg Müßig-Ångström",
    "right to left": "شهرزاد Cohen שרה",
    "emoji": "Ada 😀",
    "markup": '<b>Ada</b> $x^2$ & \\frac{1}{N} "quoted" ]]> </svg>',
}


def code_in(image: Image.Image) -> str:
    (code,) = zxingcpp.read_barcodes(image)
    return code.text


def opened(raw: bytes) -> Image.Image:
    return Image.open(io.BytesIO(raw)).convert("RGB")


def test_the_code_read_from_the_png_is_what_was_encoded_and_gives_the_very_token(ada, files):
    text = code_in(opened(files["png"]))
    assert text == picture.text_in_code(ada) == compact.compact(ada)
    assert compact.token_of(text) == ada.token


@pytest.mark.parametrize("way", ["smaller", "turned", "blurred", "jpeg"])
def test_the_code_can_still_be_read_from_a_poor_copy(ada, files, way):
    page = opened(files["png"])
    if way == "smaller":
        page = page.resize((page.width * 2 // 5, page.height * 2 // 5), Image.Resampling.BILINEAR)
    elif way == "turned":
        page = page.rotate(4, resample=Image.Resampling.BILINEAR, expand=True, fillcolor="grey")
    elif way == "blurred":
        page = page.filter(ImageFilter.GaussianBlur(2))
    else:
        raw = io.BytesIO()
        page.resize((page.width // 2, page.height // 2)).save(raw, "jpeg", quality=40)
        page = opened(raw.getvalue())
    assert code_in(page) == compact.compact(ada)


def test_the_svg_draws_the_same_code(ada):
    figure = picture.figure_of(ada)
    (patch,) = [each for each in figure.axes[0].get_children() if each.get_gid() == "code"]
    assert isinstance(patch, PathPatch)
    corners = patch.get_path().vertices.reshape(-1, 5, 2)
    side = corners[0, 1, 0] - corners[0, 0, 0]
    columns = ((corners[:, 0, 0] - corners[:, 0, 0].min()) / side).round().astype(int)
    rows = ((corners[:, 0, 1].max() - corners[:, 0, 1]) / side).round().astype(int)
    matrix = segno.make(compact.compact(ada), error="m", micro=False).matrix
    dark = {(row, column) for row, line in enumerate(matrix) for column, on in enumerate(line) if on}
    assert set(zip(rows.tolist(), columns.tolist(), strict=True)) == dark
    assert side / PIXEL == pytest.approx(round(side / PIXEL)) and side > 0.3  # whole pixels, large enough for a phone
    groups = ElementTree.fromstring(picture.svg(ada)).iter(f"{SVG}g")
    (drawn,) = [group.find(f"{SVG}path").get("d") for group in groups if group.get("id") == "code"]
    assert drawn.count("M") == len(dark)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_short_text_in_the_code_gives_the_very_token_for_every_name(name):
    credential = made(name, lessons=MANY)
    assert compact.token_of(compact.compact(credential)) == credential.token
    assert len(compact.compact(credential)) < len(credential.token) / 5


def test_what_is_too_long_for_a_code_gives_its_id_and_says_so():
    titles = {
        lesson: "".join(chr(0x4E00 + (7919 * place * (index + 3)) % 20_000) for place in range(60))
        for index, lesson in enumerate(MANY)
    }
    credential = made(lessons=MANY, titles=titles)
    assert picture.text_in_code(credential) == credential.id
    said = {text.get_text() for text in picture.figure_of(credential).axes[0].texts}
    assert "The code holds the id" in said


@pytest.mark.parametrize("damage", ["", "A", "GRADACC1", "lower", "cut", "more", "swapped", "bomb"])
def test_a_code_that_is_not_whole_is_a_sentence(ada, damage):
    whole = compact.compact(ada)
    bomb = zlib.compressobj(9, zdict=compact._dictionary())
    texts = {
        "lower": whole.lower(),
        "cut": whole[:-9],
        "more": whole + "AAAAAAAA",
        "swapped": whole[:60] + whole[61] + whole[60] + whole[62:],
        "bomb": compact.MARK
        + b32encode(bytes(64) + bomb.compress(bytes(50_000_000)) + bomb.flush()).decode().rstrip("="),
    }
    with pytest.raises(CertificateError):
        tokens.read(compact.token_of(texts.get(damage, damage)), tokens.CREDENTIAL)


def test_the_dictionary_of_version_1_never_changes():
    """Codes that hang on a wall were made with it."""
    from hashlib import sha256

    assert (
        sha256(compact._dictionary()).hexdigest() == "f40f7c83772882f0aa5d915efb24015294506cf896308e80441f34a613d9e86c"
    )


@pytest.mark.few(5)
@pytest.mark.parametrize("lessons", [1, 7, 17, 24], ids=str)
@pytest.mark.parametrize("name", [NAMES["plain"], NAMES["long"], NAMES["wide"]], ids=["plain", "long", "wide"])
def test_every_line_is_on_the_page_beside_the_panel_and_over_no_other(name, lessons):
    some = dict(list(MANY.items())[:lessons])
    texts = picture.figure_of(made(name, lessons=some, language="nl", issuer_name="W" * 60)).axes[0].texts
    boxes = []
    for text in texts:
        box = text.get_window_extent()
        left, right, low, high = (each * PIXEL for each in (box.x0, box.x1, box.y0, box.y1))
        assert min(left, low) > 0 and right < picture.PAGE[0] and high < picture.PAGE[1], text
        assert right < picture.PANEL.left or left > picture.PANEL.left, text
        boxes.append((text.get_text(), left, right, low, high))
    for one, other in combinations(boxes, 2):
        across = min(one[2], other[2]) - max(one[1], other[1])
        along = min(one[4], other[4]) - max(one[3], other[3])
        assert across <= 0 or along < 0.45 * min(one[4] - one[3], other[4] - other[3]), (
            one,
            other,
        )  # ascenders may touch


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_is_drawn_as_it_is_and_stays_text_in_the_svg(name):
    credential = made(name)
    words = [text.get_text() for text in picture.figure_of(credential).axes[0].texts]
    assert "".join(name.split()) in "".join("".join(words).split())
    if name not in (NAMES["markup"], NAMES["right to left"]):
        return
    root = ElementTree.fromstring(picture.svg(credential))
    assert root.find(f"{SVG}title").text == f"{credential.title}: {name}"
    assert name in root.find(f"{SVG}desc").text and root.get("role") == "img"
    assert not [each for each in root.iter() if each.tag in (f"{SVG}b", f"{SVG}script")]


def test_accents_piled_high_cover_nothing_but_the_names_own_place():
    """Where the page differs from that of a plain name is the name's band."""

    def page(name):
        figure = picture.figure_of(made(name, valid_from=AT))
        figure.set_dpi(40)
        figure.canvas.draw()
        return np.asarray(figure.canvas.buffer_rgba())[:, : int(picture.PANEL.left / 25.4 * 40)]

    rows = np.nonzero((page("A" + "\u0301" * 199) != page("B")).any(axis=(1, 2)))[0]
    high, low = (picture.PAGE[1] - row / 40 * 25.4 for row in (rows.min(), rows[rows < 0.8 * page("B").shape[0]].max()))
    assert 125 < low < high < 149  # the id at the foot differs too


def test_on_a_page_the_alt_text_is_escaped():
    html = picture.as_html(made('"><script>alert(1)</script>'))
    assert html.count("<") == 1 and "<script" not in html


def test_a_character_without_a_font_is_said_and_needs_no_warning(recwarn):
    credential = made("Ada \U0001fae8\u0d85\u1200")
    lacking = fonts.not_shown(credential.name)
    picture.png(credential)
    assert not [each for each in recwarn if "Glyph" in str(each.message)]
    assert ([note for note in picture.notes(credential) if lacking in note.en] != []) == bool(lacking)
    assert picture.notes(made()) == []


def test_an_old_matplotlib_says_that_it_cannot_write_from_right_to_left(monkeypatch):
    monkeypatch.delattr(picture.ft2font, "__libraqm_version__", raising=False)
    assert ["right to left" in note.en for note in picture.notes(made("שרה"))] == [True]
    assert picture.notes(made("Sara")) == []


@pytest.mark.parametrize("form", ["svg", pytest.param("png", marks=pytest.mark.long)])
def test_the_same_certificate_is_the_same_picture_in_another_process_and_another_one_is_not(ada, form):
    source = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from hashlib import sha256; from certificate.made import made\n"
        "from gradacc_lessons.certificate import picture\n"
        f"print(sha256(picture.{form}(made())).hexdigest())"
    )
    there = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True).stdout.strip()
    draw = getattr(picture, form)
    assert there == sha256(draw(ada)).hexdigest() != sha256(draw(made("Bob"))).hexdigest()


def test_the_code_is_never_wider_than_asked():
    axes = picture.figure_of(made()).axes[0]
    for text in ("A", "A" * 500, "A" * picture.MOST_IN_CODE):
        assert draw_code(axes, text, (100.0, 100.0), 46.0).width <= 46.0

"""Every lesson is fresh, clean and within the conventions, and turns into slides. (nbval runs them: `make test`.)"""

import pytest

from gradacc_lessons.authoring.check import check
from gradacc_lessons.authoring.files import lessons

LESSONS = lessons()
NAMES = [file.stem for file in LESSONS]


@pytest.mark.parametrize("file", LESSONS, ids=NAMES)
def test_the_notebook_can_be_published(file):
    assert check(file) == []


@pytest.mark.few(4)
@pytest.mark.parametrize("file", LESSONS, ids=NAMES)
def test_the_notebook_becomes_slides_with_notes_for_the_teacher(file):
    from nbconvert import SlidesExporter

    page, _ = SlidesExporter().from_filename(str(file))
    assert page.count("<section") > 3
    assert '<aside class="notes">' in page


def test_each_number_stands_for_one_lesson_of_the_course():
    numbers = [int(name.split("_")[0]) for name in NAMES]
    assert numbers == sorted(set(numbers))
    assert set(numbers) <= set(range(17))

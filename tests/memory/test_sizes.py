"""Sizes as people write and read them."""

import pytest

from gradacc_lessons.memory.sizes import LARGEST, bytes_in, readable, shown


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("24GiB", 24 * 2**30),
        ("512 MiB", 512 * 2**20),
        ("16 GB", 16 * 10**9),
        ("1.5gib", 3 * 2**29),
        (" 100 b ", 100),
        ("2TiB", 2**41),
    ],
)
def test_a_size_is_read(written, size):
    assert bytes_in(written) == size


@pytest.mark.parametrize("written", ["24 GiBs", "24", "GiB", "-1GiB", "1e3MiB", "24 Gb/s", "", "1,5GiB", "nanGiB"])
def test_a_typo_is_one_sentence_that_shows_how(written):
    with pytest.raises(ValueError, match="is no size: write a number and a unit, such as 24GiB") as raised:
        bytes_in(written)
    assert repr(written) in str(raised.value)


@pytest.mark.parametrize("written", ["1" + 400 * "0" + "GiB", "9" * 5000 + "B", "8388608TiB"])
def test_more_than_any_machine_has_is_one_short_sentence(written):
    with pytest.raises(ValueError, match="is more memory than any machine has") as raised:
        bytes_in(written)
    assert len(str(raised.value)) < 100
    assert bytes_in("8388607TiB") <= LARGEST


def test_a_long_text_that_is_no_size_is_not_repeated_whole():
    with pytest.raises(ValueError, match="is no size") as raised:
        bytes_in("x" * 10_000)
    assert len(str(raised.value)) < 150


def test_a_wrong_value_is_shown_as_far_as_it_can_be_read():
    assert (shown(24), shown("24 GiBs")) == ("24", "'24 GiBs'")
    assert shown(-(10**5000)) == "a number of thousands of digits"


@pytest.mark.parametrize(
    ("size", "written"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1.00 KiB"),
        (2**20 - 1, "1.00 MiB"),
        (1023.4 * 2**20, "1023 MiB"),
        (1023.6 * 2**20, "1.00 GiB"),
        (9.999 * 2**20, "10.0 MiB"),
        (99.96 * 2**20, "100 MiB"),
        (44.1 * 2**20, "44.1 MiB"),
        (1.5 * 2**30, "1.50 GiB"),
        (624 * 2**30, "624 GiB"),
        (5000 * 2**40, "5000 TiB"),
    ],
)
def test_a_size_is_written(size, written):
    assert readable(size) == written


@pytest.mark.parametrize("size", [2**10, 3 * 2**20, 7 * 2**30, 123 * 2**20])
def test_what_is_written_can_be_read(size):
    assert bytes_in(readable(size)) == size

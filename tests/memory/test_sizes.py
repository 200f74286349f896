"""Sizes as people write and read them."""

import pytest

from gradacc_lessons.memory.sizes import bytes_in, readable


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

"""Frames: what is packed comes back, and nothing else is taken for a frame."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from gradacc_lessons.detective.wire import LENGTH, WireError, pack, unpack

HEADERS = st.dictionaries(
    st.text(max_size=5).filter(lambda key: key != "shapes"), st.integers() | st.text() | st.none(), max_size=4
)
ARRAYS = st.dictionaries(
    st.text(max_size=5),
    arrays_of.arrays(np.float64, arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)),
    max_size=3,
)


@given(HEADERS, ARRAYS)
def test_what_goes_in_comes_out(header, arrays):
    back, found = unpack(pack(header, arrays))
    assert back == header
    assert found.keys() == arrays.keys()
    for name in arrays:
        np.testing.assert_array_equal(found[name], arrays[name])


@given(st.binary(max_size=200))
def test_noise_is_no_frame(noise):
    with pytest.raises(WireError):
        unpack(noise)


@given(HEADERS, ARRAYS, st.data())
def test_a_frame_cut_short_is_no_frame(header, arrays, data):
    frame = pack(header, {**arrays, "last": np.ones(3)})
    with pytest.raises(WireError):
        unpack(frame[: data.draw(st.integers(0, len(frame) - 1))])


@pytest.mark.parametrize(
    "header",
    [
        [],
        {},
        {"shapes": 3},
        {"shapes": [["a", [-1]]]},
        {"shapes": [["a", [10**30]]]},
        {"shapes": [["a", [2**40, 2**40]]]},
        {"shapes": [["a", ["3"]]]},
        {"shapes": [["a", [1.5]]]},
        {"shapes": [["a"]]},
    ],
)
def test_dishonest_headers_are_refused(header):
    text = json.dumps(header).encode()
    with pytest.raises(WireError):
        unpack(LENGTH.pack(len(text)) + text + bytes(64))


def test_a_frame_with_something_behind_it_is_no_frame():
    frame = pack({"a": 1}, {"x": np.ones(2)})
    for more in (b"x", frame):
        with pytest.raises(WireError, match="behind"):
            unpack(frame + more)

"""A class code is the same each time, says nothing about its learner, and a slip in it is noticed."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradacc_lessons.classroom.codes import code_for, new_class_id, read_code
from gradacc_lessons.classroom.problem import ClassError

KEY = bytes(range(32))
CODE = code_for(KEY, "k7m2qd", "s1234567")


def test_it_follows_from_key_class_and_id_alone() -> None:
    assert code_for(KEY, "k7m2qd", "s1234567") == CODE
    others = {
        code_for(KEY, "k7m2qd", "s1234568"),
        code_for(KEY, "k7m2qe", "s1234567"),
        code_for(KEY[::-1], "k7m2qd", "s1234567"),
    }
    assert len({code.text for code in others | {CODE}}) == 4
    assert "s1234567" not in CODE.text and re.fullmatch(r"k7m2qd(-[a-z2-7]{5}){5}-[a-z2-7]{3}", CODE.text)


def test_the_class_and_the_id_cannot_be_moved_into_one_another() -> None:
    assert code_for(KEY, "aaaaaa", "b\nc") != code_for(KEY, "aaaaaa", "b")


@given(st.text(max_size=40))
def test_every_id_has_a_code_that_can_be_read(learner: str) -> None:
    try:
        learner.encode()
    except UnicodeEncodeError:
        return
    code = code_for(KEY, "k7m2qd", learner)
    assert read_code(code.text) == code


def test_how_it_is_typed_does_not_matter() -> None:
    for typed in (CODE.text.upper(), CODE.text.replace("-", ""), f"  {CODE.text.replace('-', ' ')} \n"):
        assert read_code(typed) == CODE
    assert read_code(CODE.text.replace("o", "0").replace("l", "1").replace("b", "8")) == CODE


@given(st.integers(0, 100), st.sampled_from("abcdefghijklmnopqrstuvwxyz234567"))
def test_a_wrong_letter_is_noticed(at: int, letter: str) -> None:
    plain = CODE.text.replace("-", "")
    at %= len(plain)
    changed = plain[:at] + letter + plain[at + 1 :]
    if changed == plain:
        assert read_code(changed) == CODE
    else:
        with pytest.raises(ClassError, match="a letter is missing or wrong"):
            read_code(changed)


@pytest.mark.parametrize("typed", ["", "k7m2qd", CODE.text[:-1], CODE.text + "a", "=1+1", "é" * 34])
def test_what_is_no_code(typed: str) -> None:
    with pytest.raises(ClassError) as refused:
        read_code(typed)
    assert refused.value.id == "not_a_code" and "klascode" in refused.value.text.nl


def test_a_proof_is_of_one_text_and_one_code() -> None:
    other = code_for(KEY, "k7m2qd", "s2")
    assert CODE.proof("a") == CODE.proof("a") and CODE.proof("a") not in (CODE.proof("b"), other.proof("a"))
    assert CODE.handle != other.handle and CODE.text not in CODE.handle


def test_classes_have_ids_of_their_own() -> None:
    assert len({new_class_id() for _ in range(100)}) == 100

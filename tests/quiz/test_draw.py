"""A learner's own numbers: always the same for the same seed, different for others, all values about as often."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gradacc_lessons.quiz import draw
from gradacc_lessons.quiz.question_parts import Variable

B = Variable.model_validate({"choices": (4, 8, 16)})
N = Variable.model_validate({"from": 2, "to": 11})


def test_numbers_and_order_are_a_promise_to_who_regrades_later() -> None:
    key = draw.key("0123456789abcdef", 1, "acc-effective")
    assert draw.variables({"b": B, "n": N}, key) == {"b": 16, "n": 6}
    assert draw.order(["a", "b", "c", "d"], key) == ["b", "a", "d", "c"]


@given(st.text(max_size=20), st.integers(1, 50), st.text(max_size=20))
def test_the_same_seed_take_and_question_give_the_same(seed: str, take: int, question: str) -> None:
    key = draw.key(seed, take, question)
    first = draw.variables({"b": B, "n": N}, key)
    assert first == draw.variables({"n": N, "b": B}, key)
    assert first["b"] in B.values() and first["n"] in N.values()
    assert sorted(draw.order("abcd", key)) == list("abcd")


def test_seeds_takes_and_questions_give_others() -> None:
    keys = {draw.key(seed, take, question) for seed in "ab" for take in (1, 2, 12) for question in ("q", "r")}
    assert len(keys) == 12
    assert len({tuple(draw.order("abcdef", key)) for key in keys}) > 8


def test_every_value_comes_about_as_often() -> None:
    drawn = Counter(draw.variables({"n": N}, draw.key(str(seed), 1, "q"))["n"] for seed in range(5000))
    assert set(drawn) == set(N.values())
    assert all(400 < count < 600 for count in drawn.values())  # 500 each; six standard deviations are 127

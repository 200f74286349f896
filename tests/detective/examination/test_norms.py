"""The verdict on each pair of pairs_norms."""

from detective.examination import pairs_norms
from detective.examination.pairs import Pair, of_module
from detective.examination.verdicts import examined


@of_module(pairs_norms.__name__)
def test_its_causes_are_found_and_nothing_of_the_caller_changes(one: Pair) -> None:
    examined(one)

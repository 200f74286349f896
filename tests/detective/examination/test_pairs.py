"""The verdict on every pair of the table."""

import pytest
from detective.examination import pairs_edges, pairs_losses, pairs_models, pairs_norms, pairs_random, pairs_state
from detective.examination.pairs import PAIRS, Pair
from detective.examination.verdicts import examined

TABLES = pairs_edges, pairs_losses, pairs_models, pairs_norms, pairs_random, pairs_state


@pytest.mark.few(60)
@pytest.mark.parametrize("one", PAIRS, ids=[one.name for one in PAIRS])
def test_its_causes_are_found_and_nothing_of_the_caller_changes(one: Pair) -> None:
    examined(one)


def test_every_table_has_its_pairs_there() -> None:
    assert {one.build.__module__ for one in PAIRS} >= {table.__name__ for table in TABLES}

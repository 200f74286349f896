"""Lesson 10's second explorer: the plan is that of `plan`, and what a rule is told fits does fit."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradacc_lessons.lessons.peaks import forecast, largest_that_fits, largest_within, measured, predicted, recipe_for
from gradacc_lessons.lessons.planner import (
    BUDGETS,
    CURVE,
    CURVES,
    LENGTH,
    MOST,
    TARGETS,
    PlannerFigure,
    explore_planner,
    plan_and_rules,
    planner_sentence,
    planner_table,
)
from gradacc_lessons.lessons.training import collect
from gradacc_lessons.memory.forecast import balanced
from gradacc_lessons.memory.sizes import MEBIBYTE
from gradacc_lessons.memory.tuners import RULES

PATIENCE = 120.0  # seconds; only a hang comes near it
TARGET, BUDGET = 40, 48
POINTS = len(CURVES) * len(CURVE)
ROWS = POINTS + 2 + len(RULES)


def peak(b: int, n: int = 2) -> float:
    return predicted(LENGTH, recipe_for("adamw", b, n)).peak_bytes / MEBIBYTE


def run(b: int, n: int, target: int, budget: int) -> pd.DataFrame:
    return collect(plan_and_rules(recipe_for("adamw", b, n), target, budget))


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return run(20, 2, TARGET, BUDGET)


def test_the_plan_reaches_the_target_within_the_budget_with_the_fewest_micro_batches(rows: pd.DataFrame) -> None:
    planned = rows[rows["rule"] == "plan"].iloc[0]
    known = forecast(LENGTH, recipe_for("adamw", 1, 1))
    peaks = {n: known.peak(TARGET, n) / MEBIBYTE for n in (1, 2, 3)}
    assert [value <= BUDGET for value in peaks.values()] == [False, False, True]
    assert planned["b"] == balanced(TARGET, 3)[0]
    assert planned["peak"] == peaks[3]
    assert (planned["reached"], planned["trials"], planned["failed"]) == (TARGET, 1, 0)
    assert planned["shape"] == "1 of 14 and 2 of 13 (N = 3)"


def tried_by(rows: pd.DataFrame, rule: str) -> dict[int, bool]:
    return dict(rows[rows["rule"] == rule]["tried"].iloc[0])


@pytest.mark.parametrize(
    "rule", [pytest.param("Accelerate", marks=pytest.mark.long), "Lightning power", "Lightning binary search"]
)
def test_a_rule_that_leaves_n_alone_is_told_what_fits_with_n_1(rows: pd.DataFrame, rule: str) -> None:
    tried = tried_by(rows, rule)
    fitting, too_large = (max(s for s in tried if tried[s]), min(s for s in tried if not tried[s]))
    assert fitting < too_large
    assert peak(fitting, 1) <= BUDGET < peak(too_large, 1)


def test_with_n_1_more_fits_than_beside_a_gradient_and_the_rules_reach_it(rows: pd.DataFrame) -> None:
    assert planner_table(rows).set_index("rule").loc["Lightning power", "batch reached"] == 16
    assert peak(16, 1) <= BUDGET < peak(16, 2)
    assert measured(LENGTH, recipe_for("adamw", 16, 1)).peak_bytes / MEBIBYTE <= BUDGET


def test_composer_is_told_what_fits_of_the_whole_target() -> None:
    known = forecast(LENGTH, recipe_for("adamw", 1, 1))
    alone = known.peak(16, 1) / MEBIBYTE
    budget = math.ceil(alone)  # all 16 at once fit, and 16 beside the gradient of others do not
    assert alone <= budget < known.peak(32, 2) / MEBIBYTE
    assert tried_by(run(16, 1, 16, budget), "Composer") == {16: True}
    assert tried_by(run(16, 1, 32, budget), "Composer") == {32: False, 16: False, 8: True}


def test_a_plan_with_n_1_lies_on_its_curve() -> None:
    figure = PlannerFigure()
    rows = run(16, 1, 16, BUDGET)
    assert "the plan is 1 of 16 (N = 1)" in figure.draw(rows)
    alone, more = (dict(zip(*line.get_data(), strict=True)) for line in figure._curves)
    assert [*figure._plan.get_ydata(), *figure._own.get_ydata()] == [alone[16]] * 2
    assert alone[16] < more[16]
    assert [line.get_label() for line in figure._curves] == ["N = 1", "N = 2 or more"]


@given(st.integers(0, 50), st.integers(0, 40), st.integers(1, 9), st.integers(0, 600), st.integers(1, 64))
def test_the_largest_within_a_budget_is_found_whatever_the_knee(
    floor: int, start: int, slope: int, budget: int, most: int
) -> None:
    asked: list[int] = []

    def peak_of(size: int) -> int:
        asked.append(size)
        return max(10 * floor, start + slope * size)

    right = max((size for size in range(1, most + 1) if max(10 * floor, start + slope * size) <= budget), default=0)
    assert largest_within(peak_of, budget, most) == right
    assert len(set(asked)) <= 2 * (2 + 3 + 6)  # both ends, three turns by line, and 64 halved six times


@pytest.mark.long
def test_the_capacity_is_found_at_both_ends_and_between() -> None:
    recipe = recipe_for("adamw", 1, 2)
    exact = {b: predicted(LENGTH, recipe_for("adamw", b, 2)).peak_bytes for b in (1, 14, 16, 48)}
    assert largest_that_fits(LENGTH, recipe, exact[1] - 1, MOST) == 0
    for b, size in exact.items():
        assert largest_that_fits(LENGTH, recipe, size, MOST) == b
    assert largest_that_fits(LENGTH, recipe, exact[16] - 1, MOST) == 15


@pytest.mark.long
def test_a_knee_does_not_hold_the_search_up() -> None:
    recipe = recipe_for("adamw_foreach", 1, 2)
    sizes = {b: predicted(32, recipe_for("adamw_foreach", b, 2)).peak_bytes for b in (1, 9)}
    assert largest_that_fits(32, recipe, sizes[9], 32) == 9
    assert largest_that_fits(32, recipe, sizes[1], 32) >= 1


def test_under_the_highest_budget_the_capacity_is_known() -> None:
    assert all(peak(MOST, n) > BUDGETS[1] for n in CURVES)


def test_one_row_per_answer_and_all_that_a_rule_tried(rows: pd.DataFrame) -> None:
    assert len(rows) == ROWS
    assert list(rows["what"]) == ["curve"] * POINTS + ["own"] + ["rule"] * (1 + len(RULES))
    for _, rule in rows[rows["what"] == "rule"].iterrows():
        assert len(rule["tried"]) == rule["trials"]
        assert sum(not fits for _, fits in rule["tried"]) == rule["failed"]
    others = rows[rows["what"] == "rule"].iloc[1:]
    assert list(others["batches"]) == [1, 1, 12, 12]  # three a trial with Lightning
    assert (others["trials"] > 1).all() and others["failed"].sum() > 0  # what the plan does without


def test_the_table_says_who_reaches_the_target(rows: pd.DataFrame) -> None:
    table = planner_table(rows).set_index("rule")
    assert list(table.index[:3]) == ["plan", "Accelerate", "Composer"]
    assert set(table[table["of target"] == "100%"].index) == {"plan", "Composer"}
    assert table.loc["Composer", "micro-batch"] < table.loc["plan", "micro-batch"]


def test_the_sentence_tells_plan_rules_and_own_choice(rows: pd.DataFrame) -> None:
    sentence = planner_sentence(rows)
    for words in (
        "Target 40 examples, budget 48 MiB: the plan is 1 of 14 and 2 of 13 (N = 3)",
        "Of the rules, Composer reaches 40;",
        "Yours, b = 20 and N = 2: 40 examples; predicted 58.1 MiB, 10.1 MiB too much.",
    ):
        assert words in sentence
    assert planner_sentence(rows.iloc[: POINTS + 2]).endswith("48 MiB: predicting.")
    assert "30 examples, not 40; predicted" in planner_sentence(run(10, 3, TARGET, BUDGET))


def test_where_nothing_fits_it_says_so_and_draws_no_plan() -> None:
    rows = run(1, 2, 8, BUDGETS[0])
    figure = PlannerFigure()
    assert "no window of 8 fits." in figure.draw(rows)
    assert not len(figure._plan.get_xdata()[~pd.isna(figure._plan.get_xdata())])
    assert figure._words[0].get_text() == "plan: nothing fits"
    assert planner_table(rows)["batch reached"].iloc[0] == 0


def test_the_picture_follows_the_rows_as_they_come(rows: pd.DataFrame) -> None:
    figure = PlannerFigure()
    figure.draw(rows.iloc[:1])
    assert not len(figure._own.get_xdata()) and figure._words[0].get_text() == ""
    figure.update(rows)
    assert list(figure._budget.get_ydata()) == [BUDGET, BUDGET]
    assert [list(values) for values in figure._own.get_data()] == [[20], [pytest.approx(peak(20))]]
    assert max(figure._plan.get_ydata()) <= BUDGET
    trials = rows["trials"].sum()
    assert len(figure._fit.get_xdata()) + len(figure._fail.get_xdata()) == trials
    assert figure._words[1].get_text().startswith("Accelerate: reaches 15 of 40, 9 runs, 8 failed")
    assert figure.png().startswith(b"\x89PNG")


def test_each_control_moves_the_run() -> None:
    explorer = explore_planner()
    seen = set()
    for values in ({"micro_batch_size": 16}, {"target": 2}, {"accumulation_steps": 1}, {"budget": BUDGETS[1]}):
        explorer.set(**values)
        explorer.wait(PATIENCE)
        assert explorer.values.items() >= values.items()
        assert len(explorer.data) == ROWS
        seen.add(explorer.sentence)
    assert len(seen) == 4
    for impossible, sentence in (
        ({"target": TARGETS[1] + 1}, "whole number from 2 to 96"),
        ({"budget": 13}, "whole number from 14 to 116"),
        ({"micro_batch_size": MOST + 1}, f"whole number from 1 to {MOST}"),
        ({"accumulation_steps": 0}, "whole number from 1 to"),
    ):
        with pytest.raises(ValueError, match=sentence):
            explorer.set(**impossible)

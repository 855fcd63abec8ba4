"""The report's sections on judges, on cases that can be worked out by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.rows.evaluation_rows import Evaluated

Make = Callable[..., Evaluated]


def both(
    position: int, first: float, second: float, a: str = "dt", b: str = "sft", **more: object
) -> list[dict[str, object]]:
    """Verdicts on one pair in both orders: the value of `a` when it was shown first, and when second."""
    row = {"position": position, "a": a, "b": b, **more}
    return [{**row, "a_first": True, "value": first}, {**row, "a_first": False, "value": second}]


def two(evaluated: Make, **given: object) -> Evaluated:
    made = evaluated(**given)
    made.entrant("sft", letters=10, method="sft", family="llama")
    made.entrant("dt", letters=30, family="gpt")
    return made


def test_orders_that_differ_are_a_tie_and_a_flip(evaluated: Make) -> None:
    made = two(evaluated, prompts=10)
    # Six wins, one loss, two flips, and one tie in both orders.
    verdicts = [row for at in range(6) for row in both(at, 1, 1)]
    verdicts += [*both(6, 0, 0), *both(7, 1, 0), *both(8, 0.5, 1), *both(9, 0.5, 0.5)]
    made.judge("pairwise", verdicts)
    judge = made.report().judges[0]
    pair = judge.comparison.pairs[0]
    assert (pair.a, pair.b) == ("sft", "dt")
    assert (pair.wins, pair.ties, pair.losses) == (1, 3, 6)
    assert pair.win_rate.value == pytest.approx(0.25)
    assert judge.biases.flip_rate.value == pytest.approx(0.2)
    assert judge.biases.flip_rate.n == 10
    # First: six pairs 1/2 each, the loss 1/2, the flip 1, (1/2 and 0) 1/4, the tie 1/2.
    assert judge.biases.first_wins.value == pytest.approx((6 * 0.5 + 0.5 + 1 + 0.25 + 0.5) / 10)
    # dt is longer everywhere, so it wins as often as the longer does.
    assert judge.biases.longer_wins.value == pytest.approx(0.75)


def test_a_pair_with_one_usable_order_is_left_out_and_counted(evaluated: Make) -> None:
    made = two(evaluated, prompts=10)
    verdicts = [row for at in range(9) for row in both(at, 1, 1)]
    broken = both(9, 1, 1)
    broken[1] |= {"status": "unparsed", "value": None}
    made.judge("pairwise", [*verdicts, *broken])
    judge = made.report().judges[0]
    assert judge.comparison.pairs[0].win_rate.n == 9
    assert (judge.verdicts, judge.ok, judge.unparsed) == (20, 19, 1)
    assert judge.unparsed_rate == pytest.approx(0.05)
    assert judge.valid
    assert any(warning.startswith("1 pairs were judged in one order only") for warning in judge.warnings)


def test_one_order_alone_counts_where_only_one_was_asked(evaluated: Make) -> None:
    made = two(evaluated, prompts=10)
    made.judge("pairwise", [both(at, 1, 1)[at % 2] for at in range(10)])
    judge = made.report().judges[0]
    assert judge.comparison.pairs[0].win_rate.n == 10
    assert judge.biases.flip_rate.n == 0


def test_too_many_verdicts_that_tell_nothing_make_a_judge_invalid(evaluated: Make) -> None:
    made = two(evaluated, prompts=10)
    verdicts = [{"position": at, "a": name, "value": 5.0} for at in range(10) for name in ("sft", "dt")]
    verdicts[0] |= {"value": None, "status": "refused"}
    verdicts[1] |= {"value": None, "status": "error"}
    made.judge("single", verdicts)
    report = made.report()
    judge = report.judges[0]
    assert (judge.refused, judge.errors, judge.unparsed_rate, judge.valid) == (1, 1, pytest.approx(0.1), False)
    assert any("2 of 20 verdicts are unusable" in warning for warning in report.warnings)


@pytest.mark.parametrize("style", ["single", "pairwise", "alpaca_eval", "arena_hard"])
def test_an_invalid_judge_has_no_figure_but_the_reason(evaluated: Make, style: str) -> None:
    made = two(evaluated, prompts=10)
    made.scores({"sft": [5] * 10, "dt": [8] * 10}, name="sound")
    if style == "single":
        verdicts = [{"position": at, "a": name, "value": 7.0} for at in range(10) for name in ("sft", "dt")]
    else:
        verdicts = [row for at in range(10) for row in both(at, 1, 1)]
    for row in verdicts[:4]:
        row |= {"value": None, "status": "unparsed"}
    made.judge(style, verdicts, name="mumbles", settings={"baseline": "sft"})
    report = made.report()
    judge = next(judge for judge in report.judges if judge.judge == "mumbles")
    reason = "4 of 20 verdicts cannot be used (4 unparsed): more than 5%"
    assert (judge.valid, judge.invalid_because, judge.comparison.why) == (False, reason, reason)
    assert judge.invalid_entrants == {"sft": reason, "dt": reason}
    assert {row.entrant: row.mean.value for row in judge.comparison.scores} == {"sft": None, "dt": None}
    assert (judge.comparison.pairs, judge.comparison.bradley_terry, judge.comparison.winner) == ([], [], None)
    assert (judge.alpaca_eval, judge.arena_hard, judge.single) == ([], [], [])
    assert {judge.biases.first_wins.value, judge.biases.longer_wins.value, judge.biases.flip_rate.value} == {None}
    assert not [row for row in report.ranks if row.source == "mumbles"]
    assert not [row for row in report.agreement if "mumbles" in (row.a, row.b)]
    assert all("mumbles" not in row.judge | row.judge_win_rate for row in report.methods)


def test_an_entrant_on_whom_a_judge_tells_too_little_has_no_figure(evaluated: Make) -> None:
    made = two(evaluated, prompts=20)
    for name in ("rwr", "silent"):
        made.entrant(name)
    rows = [row for at in range(20) for name in ("dt", "rwr", "silent") for row in both(at, 1, 1, a=name)]
    for row in [row for row in rows if row["a"] == "silent"][:4]:
        row |= {"value": None, "status": "unparsed"}
    made.judge("pairwise", rows)
    report = made.report()
    judge = report.judges[0]
    # 4 of 120 are few, and of the baseline's too; of its own 40 they are not.
    assert (judge.valid, list(judge.invalid_entrants)) == (True, ["silent"])
    assert "4 of 40 verdicts" in judge.invalid_entrants["silent"]
    assert {row.entrant: row.mean.value for row in judge.comparison.scores} == {
        "sft": 0,
        "dt": 1,
        "rwr": 1,
        "silent": None,
    }
    assert {name for row in judge.comparison.pairs for name in (row.a, row.b)} == {"sft", "dt", "rwr"}
    assert {row.entrant for row in report.methods if row.judge_win_rate} == {"dt", "rwr"}
    assert any(
        warning.endswith("silent has no figures: " + judge.invalid_entrants["silent"]) for warning in report.warnings
    )


def test_superseded_verdicts_are_counted_apart_and_change_nothing(evaluated: Make) -> None:
    made = two(evaluated, prompts=6)
    rows = [
        {"position": at, "a": name, "value": score} for at in range(6) for name, score in (("sft", 4.0), ("dt", 6.0))
    ]
    made.judge("single", [*rows, {"position": 0, "a": "sft", "value": 9.0, "superseded": True}])
    judge = made.report().judges[0]
    assert (judge.verdicts, judge.superseded) == (12, 1)
    assert [(row.entrant, row.mean.value) for row in judge.comparison.scores] == [("sft", 4.0), ("dt", 6.0)]


def test_single_answers_have_fastchats_means_by_turn_and_category(evaluated: Make) -> None:
    made = two(evaluated, prompts=4, turns=2, categories=("math", "writing"))
    rows = [{"position": at, "turn": turn, "a": "dt", "value": float(at + turn)} for at in range(4) for turn in (1, 2)]
    rows[-1] |= {"value": None, "status": "unparsed"}
    made.judge("single", rows, settings={"unparsed_threshold": 0.2})
    row = made.report().judges[0].single[0]
    assert row.entrant == "dt"
    assert row.turn_1 == pytest.approx((1 + 2 + 3 + 4) / 4)
    assert row.turn_2 == pytest.approx((2 + 3 + 4) / 3)
    assert row.average == pytest.approx((1 + 2 + 3 + 4 + 2 + 3 + 4) / 7)
    assert row.by_category == {"math": pytest.approx((1 + 2 + 3 + 4) / 4), "writing": pytest.approx((2 + 3 + 4) / 3)}


def test_alpaca_eval_is_the_mean_preference_whichever_side_the_model_is_on(evaluated: Make) -> None:
    made = two(evaluated, prompts=8)
    values = [1.0, 0.9, 0.5, 0.2, 1.0, 0.7, 0.0, 0.9]
    rows = [
        {"position": at, "a": "dt", "b": "sft", "value": p}
        if at % 2
        else {"position": at, "a": "sft", "b": "dt", "value": 1 - p}
        for at, p in enumerate(values)
    ]
    made.judge("alpaca_eval", rows, settings={"baseline": "sft"})
    report = made.report()
    judge = report.judges[0]
    row = judge.alpaca_eval[0]
    assert row.win_rate == pytest.approx(100 * sum(values) / 8)
    assert (row.n_wins, row.n_ties, row.n_losses, row.n) == (5, 1, 2, 8)
    assert row.average_length == 30
    assert report.methods[1].judge_win_rate["judge"].value == pytest.approx(sum(values) / 8)
    assert judge.biases.flip_rate.n == 0


def test_arena_hard_counts_clear_verdicts_three_times(evaluated: Make) -> None:
    made = two(evaluated, prompts=10)
    rows = [row for at in range(5) for row in both(at, 1, 1, weight=3)] + [
        row for at in range(5, 10) for row in both(at, 0, 0, weight=1)
    ]
    made.judge("arena_hard", rows, settings={"baseline": "sft"})
    judge = made.report().judges[0]
    rates = {row.entrant: row.win_rate for row in judge.arena_hard}
    # 15 of 20 weighted battles: with two models the rate of the maximum likelihood is the share.
    assert rates == {"dt": pytest.approx(75), "sft": pytest.approx(50)}
    assert judge.comparison.pairs[0].win_rate.value == pytest.approx(0.5)


def test_the_first_of_several_answers_should_win_one_in_n(evaluated: Make) -> None:
    made = two(evaluated, prompts=8)
    made.entrant("rwr")
    rows = []
    for at in range(8):
        first = ("sft", "dt", "rwr")[at % 3]
        for name in ("sft", "dt", "rwr"):
            # The first is best in six of eight, and shares the highest score in the other two.
            value = 9.0 if name == first else 9.0 if at in (0, 1) and name == ("dt", "rwr")[at] else 3.0
            rows.append({"position": at, "a": name, "a_first": name == first, "value": value})
    made.judge("multi", rows)
    biases = made.report().judges[0].biases
    assert biases.first_wins.value == pytest.approx((6 + 2 * 0.5) / 8)
    assert biases.expected_first_wins == pytest.approx(1 / 3)


def test_a_judge_of_the_same_family_is_shown_beside_the_others(evaluated: Make) -> None:
    made = two(evaluated, prompts=10)
    made.scores({"sft": [5] * 10, "dt": [8] * 10}, name="own", family="gpt")
    made.scores({"sft": [7] * 6 + [5] * 4, "dt": [6] * 10}, name="other", family="claude")
    report = made.report()
    preferences = {judge.judge: judge.biases.self_preference for judge in report.judges}
    own = preferences["own"]
    assert own is not None
    assert own.family == "gpt"
    assert own.own.value == 1.0
    assert own.others["other"].value == pytest.approx(0.4)
    assert preferences["other"] is None

"""The items behind the figures of a report: as many as the figure counts, and with all assessments of each."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.database import transaction
from steerboard_contracts.report.evaluation import EvaluationReport
from support.rows.evaluation_rows import Evaluated

URL = "/api/v1/projects/default/evaluations/vicuna"
NAMES = ("sft", "dt", "rwr")
PROMPTS = 12


def pairwise(a: str, b: str, values: list[tuple[float, float]]) -> list[dict[str, Any]]:
    """A verdict in each order of two answers."""
    return [
        {"position": position, "a": a, "b": b, "a_first": a_first, "value": value, "raw": f"[[{value}]]"}
        for position, both in enumerate(values)
        for a_first, value in zip((True, False), both, strict=True)
    ]


@pytest.fixture
def made(sessions: sessionmaker[Session], project: Project) -> Evaluated:
    """Three entrants, a score judge, a pairwise judge with flips, a jury's worth of both, people and a reward model."""
    evaluation = Evaluated(sessions, project, prompts=PROMPTS, categories=("math", "writing", "roleplay"))
    evaluation.entrant("sft", letters=10)
    evaluation.entrant("dt", letters=[10, 14, 30] * 4)
    evaluation.entrant("rwr", letters=[5, 10, 12] * 4)
    evaluation.scores(
        {"sft": [4] * PROMPTS, "dt": [6, 4, 3] * 4, "rwr": [0.1 + 0.2, 0.3, 9] * 4}, name="scores", style="single"
    )
    evaluation.judge(
        "pairwise",
        [
            *pairwise("sft", "dt", [(1.0, 1.0), (0.0, 0.0), (1.0, 0.0), (0.5, 0.5), (0.0, 0.5), (1.0, 0.5)] * 2),
            *pairwise("rwr", "dt", [(1.0, 1.0)] * 6),
        ],
        name="pairs",
    )
    evaluation.campaign(
        {
            "ann": {at: {"sft": 1, "dt": 2, "rwr": 3} for at in range(4)},
            "ben": {at: {"sft": 2, "dt": 1, "rwr": 2} for at in range(2, 6)},
        },
        flags=[("ben", 3)],
        skipped=[("ann", 7)],
        gold={2: {"sft": 1, "dt": 2}},
    )
    evaluation.rewards({"sft": [0.5] * PROMPTS, "dt": [1.0, 0.5, 0.0] * 4}, name="rm")
    return evaluation


def comparisons(report: EvaluationReport) -> dict[str, Any]:
    return {
        **{f"judge:{judge.judge}": judge.comparison for judge in report.judges},
        **{f"human:{human.campaign}": human.comparison for human in report.human},
        **{f"reward:{reward.reward_model}": reward.comparison for reward in report.rewards},
    }


def items(client: TestClient, **filters: Any) -> dict[str, Any]:
    answer = client.get(f"{URL}/items", params=filters)
    assert answer.status_code == 200, answer.text
    listed: dict[str, Any] = answer.json()
    return listed


def positions(client: TestClient, **filters: Any) -> list[int]:
    return [item["position"] for item in items(client, **filters)["items"]]


def test_every_pair_of_every_source_has_as_many_items_as_its_figures_count(made: Evaluated, client: TestClient) -> None:
    by_source = comparisons(made.report())
    assert set(by_source) == {"judge:scores", "judge:pairs", "human:people", "reward:rm"}
    for source, comparison in by_source.items():
        assert comparison.pairs
        for row in comparison.pairs:
            for a, b, wins, losses in ((row.a, row.b, row.wins, row.losses), (row.b, row.a, row.losses, row.wins)):
                pair = {"a": a, "b": b, "source": source}
                figures = {"win": wins, "tie": row.ties, "loss": losses}
                assert items(client, **pair)["counts"] == figures, (source, a, b)
                for outcome, figure in figures.items():
                    page = items(client, **pair, outcome=outcome)
                    assert (page["total"], len(page["items"])) == (figure, figure)
                    said = {(one["by"], one["source"]): one for item in page["items"] for one in item["outcomes"]}
                    by, _, label = source.partition(":")
                    assert not figure or said[by, label]["outcome"] == outcome
                assert items(client, **pair)["total"] == row.win_rate.n
                matched = row.length_matched
                assert items(client, **pair, length="similar")["total"] == (matched.n if matched else 0)


def test_items_are_those_that_sources_contradict_each_other_on(made: Evaluated, client: TestClient) -> None:
    pair = {"a": "sft", "b": "dt"}
    # The scores prefer dt, neither, sft in turn; the pairs sft, dt, neither, neither, then they flip.
    both = {**pair, "source": "judge:scores", "other": "judge:pairs", "outcome": "disagree"}
    assert positions(client, **both) == [0, 6]
    assert positions(client, **{**both, "source": "judge:pairs", "other": "judge:scores"}) == [0, 6]
    # People prefer sft at 0 to 1, and dt from 2 on.
    assert positions(client, **pair, source="judge:pairs", outcome="disagree") == [0, 1, 6]
    # Without a pair, any two answers; without a source, any two sources.
    assert set(positions(client, outcome="disagree")) >= {0, 6}
    assert set(positions(client, a="dt", outcome="disagree")) >= {0, 6}
    assert positions(client, **pair, source="judge:pairs", outcome="flip") == [2, 4, 5, 8, 10, 11]
    assert positions(client, **pair, source="judge:scores", outcome="flip") == []


def test_items_are_filtered_by_category_and_length_and_counted_so(made: Evaluated, client: TestClient) -> None:
    pair = {"a": "sft", "b": "dt", "source": "judge:scores"}
    page = items(client, **pair, category="roleplay")
    assert [item["position"] for item in page["items"]] == [2, 5, 8, 11]
    assert page["counts"] == {"win": 4, "tie": 0, "loss": 0}
    assert {item["category"] for item in page["items"]} == {"roleplay"}
    assert positions(client, **pair, length="shorter") == [at for at in range(PROMPTS) if at % 3]
    assert positions(client, a="dt", b="sft", length="longer") == [at for at in range(PROMPTS) if at % 3]
    assert positions(client, **pair, length="similar", outcome="tie") == [1, 4, 7, 10]
    assert page["items"][0]["lengths"] == [10.0, 30.0]
    assert page["items"][0]["text"] == "Question 2?"
    assert positions(client) == list(range(PROMPTS))
    assert positions(client, a="rwr", source="judge:pairs") == list(range(6))
    assert positions(client, a="sft", source="judge:scores", outcome="loss") == [
        at for at in range(PROMPTS) if at % 3 != 1
    ]


def test_pages_follow_each_other_and_an_item_knows_its_neighbours(made: Evaluated, client: TestClient) -> None:
    pair = {"a": "sft", "b": "dt", "source": "judge:scores", "outcome": "loss"}
    seen: list[int] = []
    after = -1
    while after is not None:
        page = items(client, **pair, after=after, limit=3)
        assert page["total"] == 4
        seen += [item["position"] for item in page["items"]]
        after = page["next"]
    assert seen == [0, 3, 6, 9]

    def one(position: int) -> dict[str, Any]:
        item: dict[str, Any] = client.get(f"{URL}/items/{position}", params=pair).raise_for_status().json()
        return item

    walked = [(one(at)["previous"], one(at)["number"], one(at)["next"]) for at in seen]
    assert walked == [(None, 1, 3), (0, 2, 6), (3, 3, 9), (6, 4, None)]
    # One that does not fit, such as after a filter was changed.
    assert [one(4)[key] for key in ("previous", "number", "next", "total")] == [3, None, 6, 4]


def test_items_are_sorted_by_the_scores_of_a_source(made: Evaluated, client: TestClient) -> None:
    pair = {"a": "sft", "b": "dt", "source": "judge:scores"}
    page = items(client, **pair, sort="difference")
    assert [item["scores"] for item in page["items"]] == [[4, 6]] * 4 + [[4, 4]] * 4 + [[4, 3]] * 4
    worst_first = [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]
    assert [item["position"] for item in page["items"]] == worst_first
    assert positions(client, **pair, sort="-difference") == [*worst_first[8:], *worst_first[4:8], *worst_first[:4]]
    assert positions(client, **pair, sort="difference", outcome="tie") == [1, 4, 7, 10]
    assert positions(client, a="rwr", source="judge:scores", sort="-score")[:5] == [2, 5, 8, 11, 0]
    by_reward = items(client, a="rwr", b="dt", sort="score", source="reward:rm")
    assert (by_reward["total"], by_reward["items"]) == (0, [])

    seen: list[int] = []
    after: int | None = -1
    while after is not None:
        page = items(client, **pair, sort="difference", outcome="win", after=after, limit=3)
        seen += [item["position"] for item in page["items"]]
        after = page["next"]
    assert seen == [2, 5, 8, 11]
    one = client.get(f"{URL}/items/9", params={**pair, "sort": "difference"}).json()
    assert (one["previous"], one["number"], one["next"], one["total"]) == (6, 4, 1, 12)
    tie = client.get(f"{URL}/items/1", params={**pair, "sort": "difference", "outcome": "win"}).json()
    assert (tie["previous"], tie["number"], tie["next"], tie["total"]) == (None, None, 2, 4)
    # Nothing follows a place that no page named.
    assert positions(client, **pair, sort="difference", after=PROMPTS) == []


def test_an_item_has_both_answers_all_verdicts_rewards_and_ranks(made: Evaluated, client: TestClient) -> None:
    item = client.get(f"{URL}/items/2", params={"a": "sft", "b": "dt"}).json()
    answers = {answer["entrant"]: answer for answer in item["prompt"]["responses"]}
    assert answers["dt"]["turns"] == ["2x0".ljust(30, "x")]
    assert answers["dt"]["rewards"] == {"rm": 0.0}
    verdicts = [(one["judge"], one["a"], one["b"], one["a_first"], one["value"]) for one in item["verdicts"]]
    assert verdicts == [
        ("scores", "sft", None, None, 4.0),
        ("scores", "dt", None, None, 3.0),
        ("pairs", "sft", "dt", True, 1.0),
        ("pairs", "sft", "dt", False, 0.0),
    ]
    assert item["verdicts"][2]["raw"] == "[[1.0]]"
    assert {(one["source"], one["outcome"], one["flipped"]) for one in item["outcomes"]} == {
        ("scores", "win", False),
        ("pairs", "tie", True),
        ("people", "loss", False),
        ("rm", "win", False),
    }
    ann, ben = item["rankings"]
    assert (ann["annotator"], ann["ranks"]) == ("ann", {"sft": 1, "dt": 2, "rwr": 3})
    assert (ben["annotator"], ben["ranks"]["dt"], ben["gold"]) == ("ben", 1, {"sft": 1, "dt": 2})
    assert (ann["task_type"], ann["scores"], ann["both_bad"], ann["correction"]) == ("ranking", {}, False, None)
    assert client.get(f"{URL}/items/3").json()["rankings"][1]["flag"] == "odd"
    (skipped,) = client.get(f"{URL}/items/7").json()["rankings"]
    assert (skipped["state"], skipped["skip_reason"], skipped["ranks"]) == ("skipped", "unclear", None)
    assert len(client.get(f"{URL}/items/2").json()["verdicts"]) == 7


def test_new_verdicts_change_the_items_with_the_report(made: Evaluated, client: TestClient) -> None:
    assert "judge:late" not in {f"{one['by']}:{one['source']}" for one in items(client)["sources"]}
    made.scores({"sft": [1.0] * PROMPTS, "dt": [2.0] * PROMPTS}, name="late")
    with transaction(made.sessions) as session:
        session.get_one(Evaluation, made.id).version += 1
    assert items(client, a="dt", b="sft", source="judge:late", outcome="win")["total"] == PROMPTS


@pytest.mark.parametrize(
    ("filters", "code", "status"),
    [
        ({"a": "nobody"}, "unknown_entrant", 404),
        ({"source": "judge:nobody"}, "unknown_source", 404),
        ({"source": "scores"}, "unknown_source", 404),
        ({"b": "sft"}, "incomplete_filter", 422),
        ({"a": "sft", "b": "sft"}, "incomplete_filter", 422),
        ({"length": "longer", "a": "sft"}, "incomplete_filter", 422),
        ({"outcome": "loss", "source": "judge:scores"}, "incomplete_filter", 422),
        ({"outcome": "loss", "a": "sft"}, "incomplete_filter", 422),
        ({"other": "judge:scores"}, "incomplete_filter", 422),
        ({"outcome": "lost"}, "invalid_request", 422),
        ({"sort": "score", "a": "sft"}, "incomplete_filter", 422),
        ({"sort": "-score", "source": "judge:scores"}, "incomplete_filter", 422),
        ({"sort": "difference", "a": "sft", "source": "judge:scores"}, "incomplete_filter", 422),
        ({"sort": "length"}, "invalid_request", 422),
    ],
)
def test_filters_that_cannot_be_met_say_what_is_missing(
    made: Evaluated, client: TestClient, filters: dict[str, str], code: str, status: int
) -> None:
    for url in (f"{URL}/items", f"{URL}/items/0"):
        answer = client.get(url, params=filters)
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text


def test_strangers_and_unknown_places_find_nothing(made: Evaluated, client: TestClient) -> None:
    for path in ("items", "items/0"):
        assert client.get(f"{URL}/{path}", headers={"Authorization": "Bearer nobody"}).status_code == 401
    assert client.get(f"{URL}/items/{PROMPTS}").json()["code"] == "unknown_item"
    assert client.get(f"{URL[:-6]}nope/items").json()["code"] == "unknown_evaluation"
    verdict = client.get(f"{URL}/items/0").json()["verdicts"][0]
    call = client.get(f"{URL}/judges/scores/verdicts/{verdict['id']}/call").json()
    assert call["code"] == "no_call"
    assert client.get(f"{URL}/judges/pairs/verdicts/{verdict['id']}/call").json()["code"] == "unknown_verdict"

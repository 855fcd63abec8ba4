"""Preference datasets of judges' verdicts, and of several voices on two answers."""

import uuid
from typing import Any

import pytest
from preference_rows import PATH, make, pairs, rank, rows, train_reward_model
from ranking_world import PROJECT, RankingWorld
from sqlalchemy import select

from steerboard.accounts.tables import Project
from steerboard.evaluation.entrants.lineage import training_data
from steerboard.evaluation.judge_tables import Judge, Verdict
from steerboard.evaluation.tables import Entrant, Evaluation
from steerboard.platform.database import transaction
from steerboard.registry.tables import Artifact, Model


class Bench:
    """A judge whose verdicts are written by hand; entrants are z, w, h."""

    def __init__(self, world: RankingWorld, style: str, name: str = "judge", **settings: Any) -> None:
        self.world = world
        with transaction(world.sessions) as session:
            evaluation = session.scalars(select(Evaluation)).one()
            judge = Judge(
                evaluation_id=evaluation.id, name=name, style=style, model="gpt-9", settings=settings, created_by="test"
            )
            session.add(judge)
            session.flush()
            self.id = judge.id
            self.entrants = {entrant.name[0]: entrant.id for entrant in session.scalars(select(Entrant))}

    def say(self, position: int, a: str, b: str | None, value: float | None, **more: Any) -> None:
        other: uuid.UUID | None = self.entrants[b] if b else None
        with transaction(self.world.sessions) as session:
            session.add(
                Verdict(
                    judge_id=self.id,
                    position=position,
                    a=self.entrants[a],
                    b=other,
                    value=value,
                    **{"turn": 1, "weight": 1, "status": "ok", "superseded": False} | more,
                )
            )


@pytest.mark.parametrize("style", ["single", "multi"])
def test_a_judges_scores_order_the_answers_of_each_turn(world: RankingWorld, style: str) -> None:
    world.evaluation(prompts=2, follow_ups=1)
    judge = Bench(world, style)
    for entrant, score in (("h", 7), ("z", 9.5), ("w", 7)):
        judge.say(0, entrant, None, score)
    judge.say(0, "w", None, 1, superseded=True)
    judge.say(0, "z", None, 2, turn=2)
    judge.say(0, "w", None, 3, turn=2)
    judge.say(0, "h", None, None, turn=2, status="unparsed")
    made_rows = rows(world, make(world, {"judge": "judge"}))
    assert pairs(made_rows) == [("z", "w"), ("z", "h"), ("w", "z")]
    assert [row["turn"] for row in made_rows] == [1, 1, 2]
    assert [len(row["prompt"]) for row in made_rows] == [1, 1, 3]
    assert [made_rows[0][field] for field in ("source", "by", "chosen_score", "rejected_score")] == [
        "judge",
        "gpt-9",
        9.5,
        7.0,
    ]


def test_reviews_of_both_orders_order_the_answers_by_their_mean_scores(world: RankingWorld) -> None:
    world.evaluation(prompts=2)
    judge = Bench(world, "multi")
    for first, z, w in ((True, 9, 7), (False, 4, 8)):
        judge.say(0, "z", None, z, a_first=first)
        judge.say(0, "w", None, w, a_first=not first)
    # A review one of whose orders was not parsed makes no pair.
    judge.say(1, "z", None, 9, a_first=True)
    judge.say(1, "w", None, 7, a_first=False)
    for entrant in "zw":
        judge.say(1, entrant, None, None, a_first=entrant == "w", status="unparsed")
    (row,) = rows(world, make(world, {"judge": "judge"}))
    assert (pairs([row]), row["chosen_score"], row["rejected_score"]) == ([("w", "z")], 7.5, 6.5)


def test_pairwise_verdicts_that_change_with_the_order_are_ties(world: RankingWorld) -> None:
    world.evaluation(prompts=3)
    judge = Bench(world, "pairwise")
    judge.say(0, "z", "w", 1.0, a_first=True)
    judge.say(0, "z", "w", 0.5, a_first=False)
    judge.say(1, "w", "z", 1.0, a_first=True)
    judge.say(1, "z", "w", 0.0, a_first=True)
    judge.say(2, "h", "z", 0.0, a_first=True)
    assert pairs(rows(world, make(world, {"judge": "judge"}))) == [("w", "z"), ("z", "h")]


def test_graded_verdicts_of_both_orders_are_averaged_with_their_weights(world: RankingWorld) -> None:
    world.evaluation(prompts=2)
    alpaca, arena = Bench(world, "alpaca_eval"), Bench(world, "arena_hard", "arena")
    alpaca.say(0, "z", "w", 0.9, a_first=True)
    alpaca.say(0, "z", "w", 0.3, a_first=False)
    alpaca.say(1, "z", "w", 0.5)
    arena.say(0, "z", "w", 1.0, a_first=True)
    arena.say(0, "z", "w", 0.0, a_first=False, weight=3)
    made = make(world, {"judge": "judge"}, {"judge": "arena"})
    made_rows = rows(world, made)
    assert pairs(made_rows) == [("z", "w"), ("w", "z")]
    assert [row["preference"] for row in made_rows] == [0.6, 0.75]
    assert [row["source_name"] for row in made_rows] == ["judge", "arena"]


def test_best_against_worst_of_pairwise_verdicts_goes_by_mean_win_share(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    judge = Bench(world, "pairwise")
    judge.say(0, "z", "w", 1.0)
    judge.say(0, "w", "h", 1.0)
    judge.say(0, "z", "h", 1.0)
    assert pairs(rows(world, make(world, {"judge": "judge"}, pairs="best_worst"))) == [("z", "h")]


def test_every_row_keeps_how_many_voted_and_how_far_they_agree(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign(overlap=3)
    for name, ranks in {"ann": (1, 2, 3), "bob": (1, 2, 2), "cem": (3, 2, 1)}.items():
        rank(world.annotator(name), campaign, dict(zip("012", ranks, strict=True)))
    judge = Bench(world, "single")
    for entrant, score in (("z", 9), ("w", 5), ("h", 5)):
        judge.say(0, entrant, None, score)
    # Without a source: all that there are.
    made_rows = rows(world, make(world))
    votes = {(a, b): (row["votes"], row["agreement"]) for (a, b), row in zip(pairs(made_rows), made_rows, strict=True)}
    assert votes == {
        ("z", "w"): (4, 0.75),
        ("w", "z"): (4, 0.25),
        ("z", "h"): (4, 0.75),
        ("h", "z"): (4, 0.25),
        # ann for w, cem for h, and two ties.
        ("w", "h"): (4, 0.5),
        ("h", "w"): (4, 0.5),
    }
    assert len(made_rows) == 3 + 2 + 3 + 2
    assert {(row["people"], row["judges"]) for row in made_rows} == {(3, 1)}
    assert {(row["source"], row["by"]) for row in made_rows} == {
        ("campaign", "ann"),
        ("campaign", "bob"),
        ("campaign", "cem"),
        ("judge", "gpt-9"),
    }


def test_the_majority_makes_one_row_of_all_votes_on_two_answers(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign(overlap=3)
    for name, ranks in {"ann": (1, 2, 3), "bob": (1, 2, 2), "cem": (3, 2, 1)}.items():
        rank(world.annotator(name), campaign, dict(zip("012", ranks, strict=True)))
    judge = Bench(world, "single")
    for entrant, score in (("z", 9), ("w", 5), ("h", 5)):
        judge.say(0, entrant, None, score)
    asked = {"votes": "majority"}
    preview = world.owner.post(f"{PATH}/preview", json=asked).json()
    assert preview | {"agreement": 0.75, "compared": 3, "contested": 3} == preview
    assert preview["sources"] == ["ranking-1", "judge"]
    made = make(world, **asked)
    made_rows = rows(world, made)
    # Between w and h there is none.
    assert pairs(made_rows) == [("z", "w"), ("z", "h")]
    assert [made_rows[0][key] for key in ("by", "source", "source_name", "votes", "agreement", "people", "judges")] == [
        "ann, bob, gpt-9",
        "campaign, judge",
        "ranking-1, judge",
        4,
        0.75,
        3,
        1,
    ]
    assert [made["origin"][key] for key in ("votes", "agreement", "contested")] == ["majority", 0.75, 3]


def test_pairs_with_too_little_agreement_are_left_out_and_counted(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign(overlap=3)
    for name, ranks in {"ann": (1, 2, 3), "bob": (1, 2, 2), "cem": (3, 2, 1)}.items():
        rank(world.annotator(name), campaign, dict(zip("012", ranks, strict=True)))
    preview = world.owner.post(f"{PATH}/preview", json={"min_agreement": 0.6}).json()
    assert (preview["pairs"], preview["left_out"]) == (4, {"disagreement": 4})
    assert pairs(rows(world, make(world, min_agreement=0.6))) == [("z", "w"), ("z", "h")] * 2
    refused = make(world, min_agreement=0.9, votes="majority", status=422)
    assert refused["code"] == "empty_selection"
    assert "disagreement" in refused["detail"]


@pytest.mark.parametrize("votes", ["each", "majority"])
def test_a_judge_that_is_not_valid_makes_no_pairs_unless_it_is_named(world: RankingWorld, votes: str) -> None:
    world.evaluation(prompts=4)
    good, strict = Bench(world, "pairwise", "good"), Bench(world, "pairwise", "strict", calibration_threshold=0.8)
    unread = Bench(world, "pairwise", "unread")
    for position in range(4):
        good.say(position, "z", "w", 1.0)
        strict.say(position, "z", "w", 0.0)
        unread.say(position, "z", "w", 0.0 if position else None, status="ok" if position else "unparsed")
    preview = world.owner.post(f"{PATH}/preview", json={"votes": votes}).json()
    assert (preview["pairs"], preview["contested"], preview["sources"]) == (4, 0, ["good"])
    assert preview["left_out"] == {"judge_not_valid": 4 + 3}
    assert preview["left_out_judges"] == {
        "strict": "it has not been calibrated, and needs an accuracy of at least 80% on known pairs first",
        "unread": "1 of 4 verdicts cannot be used (1 unparsed): more than 5%",
    }
    made = make(world, votes=votes)
    assert pairs(rows(world, made)) == [("z", "w")] * 4
    assert [made["origin"][key] for key in ("left_out", "left_out_judges")] == [
        preview["left_out"],
        preview["left_out_judges"],
    ]
    assert [source["name"] for source in made["origin"]["sources"]] == ["good"]
    named = world.owner.post(f"{PATH}/preview", json={"from": [{"judge": "strict"}], "votes": votes}).json()
    assert (named["pairs"], named["left_out"], named["left_out_judges"]) == (4, {}, {})


def test_where_no_judge_counts_there_is_nothing_to_learn_from_and_the_reason_is_told(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    Bench(world, "pairwise", calibration_threshold=0.8).say(0, "z", "w", 1.0)
    preview = world.owner.post(f"{PATH}/preview", json={}).json()
    assert (preview["pairs"], preview["left_out"], preview["sources"]) == (0, {"judge_not_valid": 1}, [])
    refused = make(world, status=422)
    assert (refused["code"], "judge_not_valid" in refused["detail"]) == ("empty_selection", True)


@pytest.mark.parametrize("style", ["single", "pairwise"])
def test_an_entrant_on_which_a_judge_says_too_little_makes_no_pairs(world: RankingWorld, style: str) -> None:
    world.evaluation(prompts=10)
    judge = Bench(world, style, unparsed_threshold=0.2)
    for position in range(10):
        of_h: dict[str, Any] = {"status": "unparsed" if position < 3 else "ok"}
        if style == "pairwise":
            judge.say(position, "z", "w", 1.0)
            judge.say(position, "z", "h", None if position < 3 else 1.0, **of_h)
            judge.say(position, "w", "h", None if position < 3 else 1.0, **of_h)
        else:
            judge.say(position, "z", None, 9)
            judge.say(position, "w", None, 5)
            judge.say(position, "h", None, None if position < 3 else 1, **of_h)
    preview = world.owner.post(f"{PATH}/preview", json={}).json()
    assert (preview["pairs"], preview["left_out_judges"]) == (10, {})
    assert preview["left_out"] == {"entrant_not_valid": 7 * 2}
    assert set(pairs(rows(world, make(world)))) == {("z", "w")}
    named = world.owner.post(f"{PATH}/preview", json={"from": [{"judge": "judge"}]}).json()
    assert (named["pairs"], named["left_out"]) == (24, {})


def test_half_of_two_orders_makes_no_pair_unless_the_judge_is_named(world: RankingWorld) -> None:
    """What is left has the bias of its position; of one that was asked in one order only, that one counts."""
    world.evaluation(prompts=24)
    judge = Bench(world, "pairwise")
    for position in range(22):
        judge.say(position, "z", "w", 1.0, a_first=True)
        judge.say(position, "z", "w", 1.0, a_first=False)
    judge.say(22, "z", "w", 0.0, a_first=True)
    judge.say(22, "z", "w", None, a_first=False, status="unparsed")
    judge.say(23, "w", "z", 0.0, a_first=True)
    preview = world.owner.post(f"{PATH}/preview", json={}).json()
    assert (preview["pairs"], preview["left_out"]) == (23, {"one_order": 1})
    assert ("w", "z") not in pairs(rows(world, make(world)))
    named = world.owner.post(f"{PATH}/preview", json={"from": [{"judge": "judge"}]}).json()
    assert (named["pairs"], named["left_out"]) == (24, {})


def test_an_evaluation_without_any_vote_has_no_pairs(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    world.campaign()
    assert make(world, status=422)["code"] == "empty_selection"
    assert world.owner.post(f"{PATH}/preview", json={}).json()["code"] == "empty_selection"


def test_the_lineage_of_a_model_leads_over_its_pairs_to_rankings_and_verdicts(world: RankingWorld) -> None:
    world.evaluation(prompts=2)
    world.annotator("ann").rank_all(world.campaign())
    judge = Bench(world, "single")
    judge.say(0, "z", None, 9)
    judge.say(0, "w", None, 5)
    made = make(world, split="train")
    cleaned = world.owner.post(f"{PROJECT}/datasets/{made['name']}/cleaning", json={})
    assert cleaned.status_code == 201, cleaned.text
    with transaction(world.sessions) as session:
        project = session.scalars(select(Project)).one()
        artifact = Artifact(hash="f" * 64, size=0, manifest={"files": []})
        session.add(artifact)
        session.flush()
        session.add(Model(project_id=project.id, name="sft", role="sft", artifact_hash=artifact.hash, info={}))
    started = train_reward_model(world, cleaned.json())
    assert started.status_code == 201, started.text
    with transaction(world.sessions) as session:
        # As its worker would register it.
        session.add(
            Model(
                project_id=project.id,
                name="aligned",
                role="reward",
                artifact_hash=artifact.hash,
                info={},
                run_id=uuid.UUID(started.json()["id"]),
            )
        )
    lineage = world.owner.get(f"{PROJECT}/models/aligned/lineage").json()
    names = {node["id"]: (node["type"], node["name"]) for node in lineage["nodes"]}
    edges = {(names[edge["source"]], edge["role"], names[edge["target"]]) for edge in lineage["edges"]}
    pairs_, clean = ("dataset", made["name"]), ("dataset", cleaned.json()["name"])
    assert edges == {
        (("evaluation", "quokka-eval"), "answers", ("campaign", "ranking-1")),
        (("evaluation", "quokka-eval"), "answers", ("judge", "judge")),
        (("campaign", "ranking-1"), "rankings", pairs_),
        (("judge", "judge"), "verdicts", pairs_),
        (pairs_, "cleaned", clean),
        (clean, "data", ("run", started.json()["name"])),
        (("model", "sft"), "model", ("run", started.json()["name"])),
        (("run", started.json()["name"]), "output", ("model", "aligned")),
    }
    # What only the uncleaned version has was not learned.
    with transaction(world.sessions) as session:
        model = session.scalars(select(Model).where(Model.name == "aligned")).one()
        assert [dataset.name for dataset in training_data(session, model)] == [clean[1]]

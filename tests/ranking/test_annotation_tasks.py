"""Campaigns that ask for something else than an order: a choice between two, scores by criterion, a correction."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from preference_rows import make, pairs, rows
from ranking_world import NAMES, PROJECT, Annotator, RankingWorld
from sqlalchemy import insert, select

from steerboard.accounts.tables import Project
from steerboard.datasets.tables import Dataset
from steerboard.evaluation.ranking.tables import RankingHistory
from steerboard.evaluation.tables import Entrant, RewardAssessment, RewardValue
from steerboard.platform.database import transaction
from steerboard.registry.tables import Artifact, Model
from steerboard.runs.tables import RunInput
from support.rows.ended_run import ended_run

CRITERIA = [{"name": "truth", "points": 7, "low": "false", "high": "true"}, {"name": "style"}]


def places(task: Any) -> list[int]:
    """Which entrant, by its place in the evaluation, is shown first, second, ..."""
    return [int(answer["turns"][0].split()[2]) for answer in task["answers"]]


def submissions(world: RankingWorld, campaign: Any) -> list[Any]:
    answer = world.owner.get(world.path(campaign, "/rankings"))
    assert answer.status_code == 200, answer.text
    return list(answer.json()["items"])


def score(person: Annotator, task: Any, **by: dict[int, int]) -> Any:
    scores = {criterion: [given[place] for place in places(task)] for criterion, given in by.items()}
    return send(person, task, scores=scores)


def send(person: Annotator, task: Any, **said: Any) -> Any:
    body = {"seconds": 2.0, "submission": f"key-{uuid.uuid4()}", **said}
    return person.send("POST", f"/tasks/{task['id']}/submit", body)


def lineage_edges(world: RankingWorld, dataset: str) -> set[Any]:
    """Edges of a model that was trained on the dataset."""
    with transaction(world.sessions) as session:
        project = session.scalars(select(Project)).one()
        data = session.scalars(select(Dataset).where(Dataset.name == dataset)).one()
        artifact = Artifact(hash="f" * 64, size=0, manifest={"files": []})
        config = {"run": "train", "method": "sft"}
        run = ended_run(project.id, name="tune", kind="train", config=config, state="succeeded", reason="finished")
        session.add_all([artifact, run])
        session.flush()
        session.add(RunInput(run_id=run.id, name="data", dataset_id=data.id))
        model = {"name": "tuned", "role": "sft", "artifact_hash": artifact.hash, "info": {}, "run_id": run.id}
        session.add(Model(project_id=project.id, **model))
    lineage = world.owner.get(f"{PROJECT}/models/tuned/lineage").json()
    names = {node["id"]: (node["type"], node["name"]) for node in lineage["nodes"]}
    return {(names[edge["source"]], edge["role"], names[edge["target"]]) for edge in lineage["edges"]}


def test_a_choice_between_two_is_a_ranking_of_two_and_both_can_be_bad(world: RankingWorld) -> None:
    world.evaluation(prompts=3, names=NAMES[:2])
    campaign = world.campaign(task_type="pairwise")
    ann = world.annotator("ann")
    task = ann.first(campaign)
    assert (task["task_type"], len(task["answers"])) == ("pairwise", 2)
    assert send(ann, task, ranks=[1, 2], both_bad=True).json()["code"] == "bad_ranks"
    assert send(ann, task).json()["code"] == "bad_ranks"
    ranks = [1 if place == 0 else 2 for place in places(task)]
    assert send(ann, task, ranks=ranks).status_code == 200
    bad = ann.first(campaign)
    assert send(ann, bad, ranks=[1, 1], both_bad=True).status_code == 200
    again = ann.undo(bad).json()
    assert (again["draft"]["both_bad"], again["draft"]["ranks"]) == (True, {"A": 1, "B": 1})
    assert send(ann, again, ranks=[1, 1], both_bad=True).status_code == 200
    send(ann, ann.first(campaign), ranks=[1, 1])
    kept = {row["position"]: row for row in submissions(world, campaign)}
    assert sorted((row["ranks"]["zebra-raw"], row["ranks"]["walrus-sft"]) for row in kept.values()) == [
        (1, 1),
        (1, 1),
        (1, 2),
    ]
    assert sorted(row["both_bad"] for row in kept.values()) == [False, False, True]
    (human,) = world.owner.get(f"{PROJECT}/evaluations/quokka-eval/report").json()["human"]
    assert (human["task_type"], human["both_bad"], human["rankings"]) == ("pairwise", 1, 3)
    (pair,) = human["comparison"]["pairs"]
    assert (pair["wins"], pair["ties"], pair["losses"]) == (1, 2, 0)
    assert pairs(rows(world, make(world, {"campaign": campaign["name"]}))) == [("z", "w")]


def test_likert_scores_are_compared_as_they_are_and_make_pairs_by_criterion(world: RankingWorld) -> None:
    world.evaluation(prompts=2)
    campaign = world.campaign(task_type="likert", criteria=CRITERIA, overlap=2)
    assert [criterion["points"] for criterion in campaign["criteria"]] == [7, 5]
    ann, bob = world.annotator("ann"), world.annotator("bob")
    for person in (ann, bob):
        for _ in range(2):
            task = person.first(campaign)
            done = score(person, task, truth={0: 7, 1: 4, 2: 4}, style={0: 1, 1: 5, 2: 3})
            assert done.status_code == 200, done.text
    kept = submissions(world, campaign)[0]
    assert kept["scores"]["truth"] == {"zebra-raw": 7, "walrus-sft": 4, "heron-dt": 4}
    assert kept["criteria_ranks"]["truth"] == {"zebra-raw": 1, "walrus-sft": 2, "heron-dt": 2}
    report = world.owner.get(f"{PROJECT}/evaluations/quokka-eval/report").json()
    truth, style = report["human"]
    assert [(human["criterion"], human["points"]) for human in (truth, style)] == [("truth", 7), ("style", 5)]
    means = {row["entrant"]: row["mean"]["value"] for row in truth["comparison"]["scores"]}
    assert means == {"zebra-raw": 7.0, "walrus-sft": 4.0, "heron-dt": 4.0}
    assert truth["alpha"]["value"] == 1.0
    made = rows(world, make(world, {"campaign": campaign["name"]}, criterion="style", pairs="best_worst"))
    assert pairs(made) == [("w", "z")] * 4
    assert {(row["chosen_score"], row["rejected_score"], row["chosen_rank"]) for row in made} == {(5, 1, 1)}


@pytest.mark.parametrize(
    "scores",
    [
        {},
        {"truth": [1, 2, 3]},
        {"truth": [1, 2, 3], "style": [1, 2]},
        {"truth": [1, 2, 3], "style": [1, 2, 6]},
        {"truth": [1, 2, 3], "style": [1, 2, 3], "wit": [1, 2, 3]},
    ],
)
def test_scores_that_are_missing_or_off_the_scale_are_refused(
    world: RankingWorld, scores: dict[str, list[int]]
) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign(task_type="likert", criteria=CRITERIA)
    ann = world.annotator("ann")
    task = ann.first(campaign)
    refused = send(ann, task, scores=scores)
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_scores")
    assert send(ann, task, ranks=[1, 2, 3]).json()["code"] == "bad_ranks"
    assert ann.draft(task, scores={"truth": {"A": 7}}).status_code == 200
    assert ann.draft(task, scores={"wit": {"A": 7}}).json()["code"] == "bad_ranks"
    assert ann.first(campaign)["draft"]["scores"] == {"truth": {"A": 7}}


def test_corrected_answers_become_instructions_to_fine_tune_on(world: RankingWorld) -> None:
    world.evaluation(prompts=3, follow_ups=1)
    campaign = world.campaign(task_type="correction", entrants=["walrus-sft"])
    ann = world.annotator("ann")
    task = ann.first(campaign)
    assert ann.draft(task, correction="half a").status_code == 200
    assert ann.first(campaign)["draft"]["correction"] == "half a"
    assert send(ann, task, correction=" \n").json()["code"] == "bad_correction"
    assert send(ann, task, ranks=[1, 2]).json()["code"] == "bad_ranks"
    assert send(ann, task, correction="much better").status_code == 200
    accepted = ann.first(campaign)
    assert send(ann, accepted, correction=accepted["answers"][0]["turns"][-1]).status_code == 200
    path = world.path(campaign, "/corrections")
    made = world.owner.post(path, json={})
    assert made.status_code == 201, made.text
    dataset = made.json()
    assert (dataset["name"], dataset["kind"], dataset["rows"]) == ("quokka-eval-corrections-1", "instructions", 2)
    (row,) = [row for row in rows(world, dataset) if row["edited"]]
    position = row["position"]
    assert [message["content"] for message in row["prompt"]] == [
        f"what is {position}?",
        f"text {position} 1 0",
        "and then 0?",
    ]
    assert (row["response"], row["original"], row["by"]) == ("much better", f"text {position} 1 1", "ann")
    edited = world.owner.post(path, json={"unchanged": False}).json()
    assert (edited["name"], edited["rows"], edited["origin"]["left_out"]) == (
        "quokka-eval-corrections-2",
        1,
        {"unchanged": 1},
    )
    edges = lineage_edges(world, made.json()["name"])
    assert (("campaign", "ranking-1"), "corrections", ("dataset", "quokka-eval-corrections-1")) in edges
    # It compares nothing, so the report has no section about it.
    assert world.owner.get(f"{PROJECT}/evaluations/quokka-eval/report").json()["human"] == []


def test_a_campaign_that_asks_for_no_corrections_has_none(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    ranking = world.campaign()
    refused = world.owner.post(world.path(ranking, "/corrections"), json={})
    assert (refused.status_code, refused.json()["code"]) == (422, "no_corrections")
    empty = world.campaign(task_type="correction", entrants=["walrus-sft"])
    nothing = world.owner.post(world.path(empty, "/corrections"), json={})
    assert (nothing.status_code, nothing.json()["code"]) == (422, "empty_selection")
    ann = world.annotator("ann")
    task = ann.first(ranking)
    assert send(ann, task, ranks=[1, 2, 3], correction="x").json()["code"] == "bad_correction"
    assert send(ann, task, ranks=[1, 2, 3], scores={"x": [1]}).json()["code"] == "bad_scores"
    assert send(ann, task, ranks=[1, 1, 1], both_bad=True).json()["code"] == "bad_ranks"


def test_a_correction_that_comes_too_late_is_kept(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign(task_type="correction", entrants=["walrus-sft"])
    ann, bob = world.annotator("ann"), world.annotator("bob")
    task = ann.first(campaign)
    world.expire()
    send(bob, bob.first(campaign), correction="first")
    assert send(ann, task, correction="second").json()["code"] == "lock_lost"
    with world.sessions() as session:
        (was,) = session.scalars(select(RankingHistory.was))
    assert was["correction"] == "second"


def test_campaigns_ask_about_the_best_entrants_unless_told_otherwise(world: RankingWorld) -> None:
    evaluation = world.evaluation(prompts=2)

    def standing() -> list[tuple[str, float | None]]:
        answer = world.owner.get(f"{PROJECT}/evaluations/quokka-eval/standing")
        return [(row["entrant"], row["standing"]) for row in answer.json()["items"]]

    assert standing() == [(name, None) for name in NAMES[:3]]
    with transaction(world.sessions) as session:
        assessment = RewardAssessment(evaluation_id=evaluation, name="rm", content_hash="x", created_by="test")
        session.add(assessment)
        session.flush()
        entrants = session.scalars(select(Entrant).order_by(Entrant.position)).all()
        values = [
            {"assessment_id": assessment.id, "entrant_id": entrant.id, "position": at, "sample": 0, "value": value}
            for entrant, value in zip(entrants, (-3.0, 0.5, 2.0), strict=True)
            for at in range(2)
        ]
        session.execute(insert(RewardValue), values)
    assert standing() == [("heron-dt", 1.0), ("walrus-sft", 0.5), ("zebra-raw", 0.0)]
    assert world.campaign(task_type="pairwise")["entrants"] == ["walrus-sft", "heron-dt"]
    assert world.campaign(task_type="correction")["entrants"] == ["heron-dt"]
    # People rank the other way round, and weigh as much as the reward model.
    ranking = world.campaign()
    ann = world.annotator("ann")
    for _ in range(2):
        task = ann.first(ranking)
        assert send(ann, task, ranks=[place + 1 for place in places(task)]).status_code == 200
    assert standing() == [(name, 0.5) for name in NAMES[:3]]

from __future__ import annotations

import pytest
from preference_rows import PATH, make, pairs, rank, rows, train_reward_model
from ranking_world import PROJECT, RankingWorld
from sqlalchemy import select

from steerboard.accounts.tables import Project
from steerboard.evaluation import contamination
from steerboard.evaluation.tables import Evaluation, Response
from steerboard.platform.database import transaction
from steerboard.registry.tables import Artifact, Model


def test_every_strictly_ordered_pair_of_every_annotator_becomes_a_row(world: RankingWorld) -> None:
    world.evaluation(prompts=2)
    campaign = world.campaign(overlap=2)
    ann, bob = world.annotator("ann"), world.annotator("bob")
    rank(bob, campaign, {"0": 3, "1": 2, "2": 1})
    rank(ann, campaign, {"0": 1, "1": 2, "2": 2})
    made = make(world, {"campaign": "ranking-1"})
    assert (made["name"], made["kind"], made["rows"]) == ("quokka-eval-preferences-1", "preferences", 5)
    made_rows = rows(world, made)
    # Ann before bob; her tie is not a pair, and bob's contrary vote is kept.
    assert pairs(made_rows) == [("z", "w"), ("z", "h"), ("w", "z"), ("h", "z"), ("h", "w")]
    first = made_rows[0]
    position = first["position"]
    assert first["prompt"] == [{"role": "user", "content": f"what is {position}?"}]
    assert (first["chosen"], first["rejected"]) == (f"text {position} 0 0", f"text {position} 1 0")
    assert [first[field] for field in ("by", "source", "source_name", "chosen_rank", "rejected_rank", "turn")] == [
        "ann",
        "campaign",
        "ranking-1",
        1,
        2,
        1,
    ]
    assert first["at"].startswith("20")
    assert first["question_id"] == f"q{position}"
    origin = made["origin"]
    assert (origin["type"], origin["evaluation"]["name"], origin["actor"]) == (
        "evaluation",
        "quokka-eval",
        "token:test",
    )
    assert [source["name"] for source in origin["sources"]] == ["ranking-1"]


def test_the_same_call_makes_the_next_version_with_the_same_rows(world: RankingWorld) -> None:
    world.evaluation(prompts=3)
    campaign = world.campaign()
    world.annotator("ann").rank_all(campaign)
    one, two = (
        make(world, {"campaign": campaign["id"]}, name="loop"),
        make(world, {"campaign": "ranking-1"}, name="loop"),
    )
    assert (one["name"], two["name"]) == ("loop-1", "loop-2")
    assert one["content_hash"] == two["content_hash"]
    assert rows(world, one) == rows(world, two)
    statistics = world.owner.get(f"{PROJECT}/datasets/loop-1/statistics").json()
    assert statistics["rows"] == 9
    matching = world.owner.get(f"{PROJECT}/datasets/loop-1/samples?q=%22text%201%22").json()["items"]
    assert len(matching) == 3


@pytest.fixture
def held_out(world: RankingWorld) -> RankingWorld:
    """Every prompt that was ranked is held out by the project's split."""
    with transaction(world.sessions) as session:
        project = session.scalars(select(Project)).one()
        project.held_out_fraction = 0.999999
        artifact = Artifact(hash="f" * 64, size=0, manifest={"files": []})
        session.add(artifact)
        session.flush()
        session.add(Model(project_id=project.id, name="sft", role="sft", artifact_hash=artifact.hash, info={}))
    world.evaluation(prompts=3)
    world.annotator("ann").rank_all(world.campaign())
    return world


def test_pairs_of_held_out_prompts_are_counted_before_and_refused_at_launch(held_out: RankingWorld) -> None:
    asked = {"from": [{"campaign": "ranking-1"}]}
    preview = held_out.owner.post(f"{PATH}/preview", json=asked).json()
    assert preview == {
        "pairs": 9,
        "held_out_pairs": 9,
        "prompts": 3,
        "held_out_prompts": 3,
        "left_out": {},
        "left_out_judges": {},
        "sources": ["ranking-1"],
        "compared": 9,
        "contested": 0,
        "agreement": 1.0,
    }
    assert held_out.owner.get(f"{PROJECT}/datasets").json()["items"] == []
    made = make(held_out, {"campaign": "ranking-1"})
    assert (made["rows"], made["held_out_rows"], made["origin"]["split"]) == (9, 9, "by_prompt")
    refused = train_reward_model(held_out, made)
    problem = refused.json()
    assert (refused.status_code, problem["code"]) == (422, "no_training_rows")
    message = f"`{made['name']}` has 9 rows, all of them held out, so none are left for training"
    assert problem["errors"] == [{"location": "inputs.data", "message": message}]
    assert "held out" in problem["detail"]
    assert "threshold" not in problem["hint"]
    recipe = "name: r\nstages:\n  reward: {run: train, method: reward_model, model: $m, data: $d}\n"
    recipe += "inputs: {m: {type: model}, d: {type: dataset, kind: preferences}}\n"
    body = {"text": recipe, "set": ["m=sft", f"d={made['name']}"]}
    started = held_out.owner.post(f"{PROJECT}/pipelines", json=body).json()
    assert started["errors"][0]["location"] == "stages.reward.data (line 3)"
    assert "9 rows, all of them held out" in started["errors"][0]["message"]
    assert held_out.owner.get(f"{PROJECT}/runs").json()["items"] == []


def test_pairs_may_knowingly_be_given_to_training(held_out: RankingWorld) -> None:
    split = make(held_out, {"campaign": "ranking-1"})
    made = make(held_out, {"campaign": "ranking-1"}, split="train")
    assert (made["rows"], made["held_out_rows"], made["origin"]["split"]) == (9, 0, "train")
    # The same rows, but not the same to learn from: neither a finished run nor a cached file may be used.
    assert made["content_hash"] != split["content_hash"]
    samples = held_out.owner.get(f"{PROJECT}/datasets/{made['name']}/samples?limit=50").json()["items"]
    assert {row["split"] for row in samples} == {"train"}
    assert train_reward_model(held_out, made).status_code == 201
    # A model that learned from it has seen the prompts, and an evaluation of it finds that.
    with transaction(held_out.sessions) as session:
        evaluation = session.scalars(select(Evaluation)).one()
        project = session.scalars(select(Project)).one()
        contamination.plan(session, project, evaluation, [made["name"]])
        assert contamination.counts(session, evaluation) == (3, 0)


def test_a_preview_counts_what_is_left_out_and_refuses_what_making_would(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    with transaction(world.sessions) as session:
        responses = session.scalars(select(Response).order_by(Response.entrant_id)).all()
        responses[1].turns = responses[0].turns
    campaign = world.campaign()
    ann = world.annotator("ann")
    assert world.owner.post(f"{PATH}/preview", json={"from": [{"campaign": "ranking-1"}]}).json()["pairs"] == 0
    ann.submit(ann.first(campaign), [1, 2, 3])
    preview = world.owner.post(f"{PATH}/preview", json={"from": [{"campaign": "ranking-1"}]}).json()
    assert (preview["pairs"], preview["left_out"]) == (2, {"identical": 1})
    assert world.owner.post(f"{PATH}/preview", json={"from": [{"campaign": "none"}]}).status_code == 404


def test_best_against_worst_makes_one_pair_of_a_ranking_without_ties(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign()
    rank(world.annotator("ann"), campaign, {"0": 2, "1": 3, "2": 1})
    assert pairs(rows(world, make(world, {"campaign": "ranking-1"}, pairs="best_worst"))) == [("h", "w")]


def test_a_criterion_is_chosen_by_name(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign(criteria=[{"name": "richness"}, {"name": "clarity"}])
    ann = world.annotator("ann")
    task = ann.first(campaign)
    places = [int(answer["turns"][0].split()[2]) for answer in task["answers"]]
    ranks = {"richness": [1 + place for place in places], "clarity": [3 - place for place in places]}
    body = {"criteria_ranks": ranks, "seconds": 1, "submission": "submission-1"}
    assert ann.send("POST", f"/tasks/{task['id']}/submit", body).status_code == 200
    clear = make(world, {"campaign": "ranking-1"}, criterion="clarity", pairs="best_worst")
    assert pairs(rows(world, clear)) == [("h", "z")]
    assert rows(world, clear)[0]["criterion"] == "clarity"
    for criterion in ("kindness", None):
        assert make(world, {"campaign": "ranking-1"}, criterion=criterion, status=422)["code"] == "unknown_criterion"


def test_of_several_turns_the_conversation_before_the_last_is_the_prompt(world: RankingWorld) -> None:
    world.evaluation(prompts=1, follow_ups=1)
    campaign = world.campaign()
    rank(world.annotator("ann"), campaign, {"0": 1, "1": 2, "2": 2})
    first = rows(world, make(world, {"campaign": "ranking-1"}))[0]
    assert [message["content"] for message in first["prompt"]] == ["what is 0?", "text 0 0 0", "and then 0?"]
    assert [message["role"] for message in first["prompt"]] == ["user", "assistant", "user"]
    assert (first["chosen"], first["rejected"], first["turn"]) == ("text 0 0 1", "text 0 1 1", 2)
    assert first["same_history"] is False


def test_empty_and_identical_answers_are_left_out_and_counted(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    with transaction(world.sessions) as session:
        responses = session.scalars(select(Response).order_by(Response.entrant_id)).all()
        responses[1].turns = responses[0].turns
        responses[2].turns = [" "]
    campaign = world.campaign()
    ann = world.annotator("ann")
    ann.submit(ann.first(campaign), [1, 2, 3])
    refused = make(world, {"campaign": "ranking-1"}, status=422)
    assert refused["code"] == "empty_selection"
    assert make(world, {"campaign": "nothing"}, status=404)["code"] == "unknown_campaign"
    assert make(world, {"judge": "nobody"}, status=404)["code"] == "unknown_judge"
    assert make(world, {"judge": "a", "campaign": "b"}, status=422)["code"] == "invalid_request"
    assert world.owner.get(f"{PROJECT}/datasets").json()["items"] == []

from __future__ import annotations

import uuid
from typing import Any

import pytest
from ranking_world import PROJECT, RankingWorld
from sqlalchemy import select

from steerboard.accounts.tables import Project
from steerboard.evaluation import contamination
from steerboard.evaluation.entrants.lineage import training_data
from steerboard.evaluation.judge_tables import Judge, Verdict
from steerboard.evaluation.tables import Entrant, Evaluation, Response
from steerboard.platform.database import transaction
from steerboard.registry.tables import Artifact, Model

PATH = f"{PROJECT}/evaluations/quokka-eval/preferences"


def make(world: RankingWorld, *sources: dict[str, str], status: int = 201, **given: Any) -> Any:
    answer = world.owner.post(PATH, json={"from": list(sources) or None, **given})
    assert answer.status_code == status, answer.text
    return answer.json()


def rows(world: RankingWorld, dataset: Any) -> list[dict[str, Any]]:
    """Samples with their extra fields."""
    answer = world.owner.get(f"{PROJECT}/datasets/{dataset['name']}/samples?limit=500")
    assert answer.status_code == 200, answer.text
    return [row["sample"] | row["extra"] for row in sorted(answer.json()["items"], key=lambda row: row["row"])]


def pairs(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    short = {"zebra-raw": "z", "walrus-sft": "w", "heron-dt": "h"}
    return [(short[row["chosen_entrant"]], short[row["rejected_entrant"]]) for row in found]


def rank(person: Any, campaign: Any, ranks: dict[str, int], **more: Any) -> None:
    """Of the next item, by the place of the entrant in the evaluation."""
    task = person.one(campaign)
    given = [ranks[answer["turns"][0].split()[2]] for answer in task["answers"]]
    assert person.submit(task, given, **more).status_code == 200


def test_every_strictly_ordered_pair_of_every_annotator_becomes_a_row(world: RankingWorld) -> None:
    world.evaluation(prompts=2)
    campaign = world.campaign(overlap=2)
    ann, bob = world.annotator("ann"), world.annotator("bob")
    rank(bob, campaign, {"0": 3, "1": 2, "2": 1})
    rank(ann, campaign, {"0": 1, "1": 2, "2": 2})
    made = make(world, {"campaign": "ranking-1"})
    assert (made["name"], made["kind"], made["rows"]) == ("quokka-eval-preferences-1", "preferences", 5)
    found = rows(world, made)
    # Ann before bob; her tie is not a pair, and bob's contrary vote is kept.
    assert pairs(found) == [("z", "w"), ("z", "h"), ("w", "z"), ("h", "z"), ("h", "w")]
    first = found[0]
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
    found = world.owner.get(f"{PROJECT}/datasets/loop-1/samples?q=%22text%201%22").json()["items"]
    assert len(found) == 3


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


def train_reward_model(world: RankingWorld, dataset: Any) -> Any:
    body = {"config": {"run": "train", "method": "reward_model"}, "inputs": {"model": "sft", "data": dataset["name"]}}
    return world.owner.post(f"{PROJECT}/runs", json=body)


def test_pairs_of_held_out_prompts_are_counted_before_and_refused_at_launch(held_out: RankingWorld) -> None:
    asked = {"from": [{"campaign": "ranking-1"}]}
    preview = held_out.owner.post(f"{PATH}/preview", json=asked).json()
    assert preview == {
        "pairs": 9,
        "held_out_pairs": 9,
        "prompts": 3,
        "held_out_prompts": 3,
        "left_out": {},
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
    assert problem["errors"] == [{"location": "inputs.data", "message": "9 rows, all of them held out"}]
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
    ann.submit(ann.one(campaign), [1, 2, 3])
    found = world.owner.post(f"{PATH}/preview", json={"from": [{"campaign": "ranking-1"}]}).json()
    assert (found["pairs"], found["left_out"]) == (2, {"identical": 1})
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
    task = ann.one(campaign)
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
    ann.submit(ann.one(campaign), [1, 2, 3])
    refused = make(world, {"campaign": "ranking-1"}, status=422)
    assert refused["code"] == "empty_selection"
    assert make(world, {"campaign": "nothing"}, status=404)["code"] == "unknown_campaign"
    assert make(world, {"judge": "nobody"}, status=404)["code"] == "unknown_judge"
    assert make(world, {"judge": "a", "campaign": "b"}, status=422)["code"] == "invalid_request"
    assert world.owner.get(f"{PROJECT}/datasets").json()["items"] == []


class Bench:
    """A judge whose verdicts are written by hand; entrants are z, w, h."""

    def __init__(self, world: RankingWorld, style: str, name: str = "judge") -> None:
        self.world = world
        with transaction(world.sessions) as session:
            evaluation = session.scalars(select(Evaluation)).one()
            judge = Judge(
                evaluation_id=evaluation.id, name=name, style=style, model="gpt-9", settings={}, created_by="test"
            )
            session.add(judge)
            session.flush()
            self.id = judge.id
            self.entrants = {one.name[0]: one.id for one in session.scalars(select(Entrant))}

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
    found = rows(world, make(world, {"judge": "judge"}))
    assert pairs(found) == [("z", "w"), ("z", "h"), ("w", "z")]
    assert [row["turn"] for row in found] == [1, 1, 2]
    assert [len(row["prompt"]) for row in found] == [1, 1, 3]
    assert [found[0][field] for field in ("source", "by", "chosen_score", "rejected_score")] == [
        "judge",
        "gpt-9",
        9.5,
        7.0,
    ]


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
    found = rows(world, made)
    assert pairs(found) == [("z", "w"), ("w", "z")]
    assert [row["preference"] for row in found] == [0.6, 0.75]
    assert [row["source_name"] for row in found] == ["judge", "arena"]


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
    found = rows(world, make(world))
    votes = {(a, b): (row["votes"], row["agreement"]) for (a, b), row in zip(pairs(found), found, strict=True)}
    assert votes == {
        ("z", "w"): (4, 0.75),
        ("w", "z"): (4, 0.25),
        ("z", "h"): (4, 0.75),
        ("h", "z"): (4, 0.25),
        # ann for w, cem for h, and two ties.
        ("w", "h"): (4, 0.5),
        ("h", "w"): (4, 0.5),
    }
    assert len(found) == 3 + 2 + 3 + 2
    assert {(row["people"], row["judges"]) for row in found} == {(3, 1)}
    assert {(row["source"], row["by"]) for row in found} == {
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
    found = rows(world, made)
    # Between w and h there is none.
    assert pairs(found) == [("z", "w"), ("z", "h")]
    assert [found[0][key] for key in ("by", "source", "source_name", "votes", "agreement", "people", "judges")] == [
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
    found = world.owner.get(f"{PROJECT}/models/aligned/lineage").json()
    names = {one["id"]: (one["type"], one["name"]) for one in found["nodes"]}
    edges = {(names[edge["source"]], edge["role"], names[edge["target"]]) for edge in found["edges"]}
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
        assert [one.name for one in training_data(session, model)] == [clean[1]]

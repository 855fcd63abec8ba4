"""A reviewer decides where annotators disagree; the decision counts, and everything stays in sight."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from preference_rows import make, pairs, rank, rows
from ranking_world import NAMES, PROJECT, Annotator, RankingWorld

from steerboard.evaluation.ranking.disagreement import Opinion, disagreement


def review(person: Annotator, campaign: Any) -> Any:
    answer = person.send("GET", f"/{campaign['id']}/review")
    assert answer.status_code == 200, answer.text
    return answer.json()


def decide(person: Annotator, campaign: Any, item: Any, by_place: dict[int, int], **more: Any) -> Any:
    ranks = [by_place[int(answer["turns"][0].split()[2])] for answer in item["answers"]]
    return person.send("PUT", f"/{campaign['id']}/decisions/{item['id']}", {"ranks": ranks, **more})


def contested(world: RankingWorld) -> tuple[Any, Annotator]:
    """Three items: on one both annotators are of opposite views, on one they differ a little, on one they agree."""
    world.evaluation(prompts=3)
    campaign = world.campaign(overlap=2)
    ann, bob = world.annotator("ann"), world.annotator("bob")
    for theirs in ({"0": 3, "1": 2, "2": 1}, {"0": 1, "1": 3, "2": 2}, {"0": 1, "1": 2, "2": 3}):
        rank(ann, campaign, {"0": 1, "1": 2, "2": 3})
        rank(bob, campaign, theirs)
    return campaign, world.annotator("rita", "reviewer")


def test_disagreements_are_listed_the_greatest_first_with_every_opinion(world: RankingWorld) -> None:
    campaign, rita = contested(world)
    disputed = review(rita, campaign)
    assert (disputed["open"], disputed["decided"], len(disputed["items"])) == (2, 0, 2)
    assert [round(item["disagreement"], 3) for item in disputed["items"]] == [1.0, 0.333]
    first = disputed["items"][0]
    ann, bob = first["annotators"]
    places = {answer["key"]: int(answer["turns"][0].split()[2]) for answer in first["answers"]}
    assert (ann["by"], {places[key]: value for key, value in ann["ranks"].items()}) == ("ann", {0: 1, 1: 2, 2: 3})
    assert (bob["by"], {places[key]: value for key, value in bob["ranks"].items()}) == ("bob", {0: 3, 1: 2, 2: 1})
    assert world.figures(campaign)["disagreements"] == 2
    # Blind, like annotators.
    said = "".join(rita.said).lower()
    assert [name for name in NAMES[:3] if name in said] == []


def test_a_decision_counts_instead_of_the_rankings_and_both_stay_in_sight(world: RankingWorld) -> None:
    campaign, rita = contested(world)
    item = review(rita, campaign)["items"][0]
    assert decide(rita, campaign, item, {0: 2, 1: 1, 2: 3}, comment="facts").status_code == 204
    disputed = review(rita, campaign)
    assert (disputed["open"], disputed["decided"]) == (1, 1)
    (decided,) = rita.send("GET", f"/{campaign['id']}/decisions").json()["items"]
    assert (decided["decision"]["by"], decided["decision"]["comment"]) == ("rita", "facts")
    assert [opinion["by"] for opinion in decided["annotators"]] == ["ann", "bob"]
    figures = world.figures(campaign)
    assert (figures["disagreements"], figures["adjudicated"], figures["rankings"]) == (1, 1, 6)

    (human,) = world.owner.get(f"{PROJECT}/evaluations/quokka-eval/report").json()["human"]
    assert (human["adjudicated"], human["rankings"]) == (1, 6)
    scores = {row["entrant"]: row["mean"]["value"] for row in human["comparison"]["scores"]}
    # By item: 2, 3, 1 as decided; the means of 3, 2, 1 and 3, 1, 2; 3, 2, 1 twice.
    assert scores == {"zebra-raw": pytest.approx(8 / 3), "walrus-sft": pytest.approx(6.5 / 3), "heron-dt": 3.5 / 3}
    made = rows(world, make(world, {"campaign": campaign["name"]}))
    ruled = [row for row in made if row.get("adjudicated")]
    assert {row["by"] for row in ruled} == {"rita"}
    assert sorted(pairs(ruled)) == [("w", "h"), ("w", "z"), ("z", "h")]
    assert len(made) == 3 + 6 + 6


def test_a_decision_can_be_changed_and_withdrawn(world: RankingWorld) -> None:
    campaign, rita = contested(world)
    item = review(rita, campaign)["items"][0]
    decide(rita, campaign, item, {0: 2, 1: 1, 2: 3})
    decide(rita, campaign, item, {0: 1, 1: 1, 2: 1})
    (decided,) = rita.send("GET", f"/{campaign['id']}/decisions").json()["items"]
    assert set(decided["decision"]["ranks"].values()) == {1}
    assert rita.send("DELETE", f"/{campaign['id']}/decisions/{item['id']}").status_code == 204
    assert review(rita, campaign)["open"] == 2
    assert rita.send("GET", f"/{campaign['id']}/decisions").json()["items"] == []
    unknown = rita.send("PUT", f"/{campaign['id']}/decisions/{uuid.uuid4()}", {"ranks": [1, 2, 3]})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_item")
    assert decide(rita, campaign, item, {0: 1, 1: 1, 2: 1}, scores={"x": [1]}).json()["code"] == "bad_scores"


def test_an_undone_submission_is_no_disagreement_any_more(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign(overlap=2)
    ann, bob = world.annotator("ann"), world.annotator("bob")
    rank(ann, campaign, {"0": 1, "1": 2, "2": 3})
    task = bob.first(campaign)
    bob.submit(task, [1, 1, 1])
    assert world.figures(campaign)["disagreements"] == 1
    bob.undo(task)
    assert world.figures(campaign)["disagreements"] == 0


@pytest.mark.parametrize(
    ("role", "status"), [("annotator", 403), ("viewer", 403), ("reviewer", 200), ("engineer", 200)]
)
def test_reviewers_and_those_who_run_the_project_review(world: RankingWorld, role: str, status: int) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign()
    person = world.annotator("pat", role)
    for method, path in (("GET", "review"), ("GET", "decisions")):
        assert person.send(method, f"/{campaign['id']}/{path}").status_code == status
    # A reviewer sees nothing else of the project.
    seen = person.client.get(f"{PROJECT}/evaluations/quokka-eval/report").status_code
    assert seen == (200 if role in ("engineer", "viewer") else 403)


def test_disagreement_is_measured_on_the_scale_of_each_task() -> None:
    def scored(**scores: float) -> Opinion:
        return Opinion({}, {"truth": scores})

    assert disagreement([Opinion({"": {"a": 1, "b": 2}}, {})], {}) is None
    ranked = [Opinion({"": {"a": 1, "b": 2}}, {}), Opinion({"": {"a": 1, "b": 1}}, {})]
    assert disagreement(ranked, {}) == 0.5
    assert disagreement([scored(a=1, b=5), scored(a=2, b=5)], {"truth": 5}) == 0.125
    texts = [Opinion({}, {}, text) for text in ("yes", "yes ", "no")]
    assert disagreement(texts, {}) == pytest.approx(2 / 3)

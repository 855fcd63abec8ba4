"""Annotators whose first gold items show that they work with care count; and how fast and well each works."""

from __future__ import annotations

from typing import Any

import pytest
from preference_rows import make, rank, rows
from ranking_world import PROJECT, Annotator, RankingWorld

from steerboard_statistics.proportions import proportion_interval

GOLD = {"zebra-raw": 1, "walrus-sft": 2, "heron-dt": 3}
RIGHT, WRONG = {"0": 1, "1": 2, "2": 3}, {"0": 3, "1": 2, "2": 1}


def qualifying(world: RankingWorld, prompts: int = 5, gold: int = 2, **given: Any) -> Any:
    world.evaluation(prompts=prompts)
    campaign = world.campaign(qualify_items=2, qualify_share=0.8, **given)
    for position in range(gold):
        answer = world.owner.put(world.path(campaign, f"/gold/{position}"), json={"ranks": GOLD})
        assert answer.status_code == 200
    return campaign


def prompts_of(person: Annotator, campaign: Any, ahead: int = 3) -> list[str]:
    return [task["prompt"]["messages"][-1]["content"] for task in person.next(campaign, ahead)["items"]]


def test_an_annotator_who_passes_the_gold_items_gets_the_others(world: RankingWorld) -> None:
    campaign = qualifying(world)
    ann = world.annotator("ann")
    assert sorted(prompts_of(ann, campaign)) == ["what is 0?", "what is 1?"]
    rank(ann, campaign, RIGHT)
    assert len(prompts_of(ann, campaign)) == 1
    rank(ann, campaign, RIGHT)
    assert len(prompts_of(ann, campaign)) == 3
    for _ in range(3):
        rank(ann, campaign, RIGHT)
    assert ann.next(campaign)["state"] == "done"
    assert len(rows(world, make(world, {"campaign": campaign["name"]}))) == 15


def test_one_who_fails_gets_no_more_and_counts_for_nothing(world: RankingWorld) -> None:
    campaign = qualifying(world)
    ann, bob = world.annotator("ann"), world.annotator("bob")
    task = bob.first(campaign)
    rank(bob, campaign, WRONG)
    rank(bob, campaign, RIGHT)
    assert bob.next(campaign) == {"items": [], "left": 0, "done": 2, "state": "unqualified"}
    again = bob.undo(task)
    assert (again.status_code, again.json()["code"]) == (409, "not_qualified")
    rank(ann, campaign, RIGHT)
    # Who has not finished the qualification does not count either.
    assert make(world, {"campaign": campaign["name"]}, status=422)["code"] == "empty_selection"
    rank(ann, campaign, RIGHT)
    made = rows(world, make(world, {"campaign": campaign["name"]}))
    assert {row["by"] for row in made} == {"ann"}
    (human,) = world.owner.get(f"{PROJECT}/evaluations/quokka-eval/report").json()["human"]
    assert {row["entrant"]: row["mean"]["value"] for row in human["comparison"]["scores"]} == {
        "zebra-raw": 3.0,
        "walrus-sft": 2.0,
        "heron-dt": 1.0,
    }
    # They are in sight all the same, and gold items need no reviewer.
    assert [row["annotator"] for row in human["annotators"]] == ["ann", "bob"]
    assert world.figures(campaign)["disagreements"] == 0


def test_annotators_wait_while_there_is_too_little_gold_and_the_owner_is_warned(world: RankingWorld) -> None:
    campaign = qualifying(world, gold=1)
    ann = world.annotator("ann")
    rank(ann, campaign, RIGHT)
    assert ann.next(campaign)["state"] == "waiting"
    (warning,) = world.figures(campaign)["warnings"]
    assert "asks for 2 gold items, and there are 1" in warning
    world.owner.put(world.path(campaign, "/gold/3"), json={"ranks": GOLD})
    assert prompts_of(ann, campaign) == ["what is 3?"]
    assert world.figures(campaign)["warnings"] == []


def test_skipping_gold_items_passes_no_qualification(world: RankingWorld) -> None:
    campaign = qualifying(world)
    ann = world.annotator("ann")
    rank(ann, campaign, RIGHT)
    ann.skip(ann.first(campaign))
    assert ann.next(campaign)["state"] == "unqualified"


def test_a_qualification_of_corrections_is_refused(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    refused = world.campaign(task_type="correction", entrants=["heron-dt"], qualify_items=1, status=422)
    assert refused["code"] == "invalid_request"


def test_the_quality_of_each_annotator_and_day_is_shown(world: RankingWorld) -> None:
    campaign = qualifying(world, prompts=3, overlap=2)
    ann, bob, eve = (world.annotator(name) for name in ("ann", "bob", "eve"))
    for person in (ann, bob):
        for _ in range(2):
            rank(person, campaign, RIGHT, seconds=30.0)
    rank(ann, campaign, RIGHT, seconds=60.0)
    rank(bob, campaign, WRONG, seconds=30.0, flag="odd")
    for _ in range(2):
        rank(eve, campaign, WRONG, seconds=1.0)
    rita = world.annotator("rita", "reviewer")
    (item,) = rita.send("GET", f"/{campaign['id']}/review").json()["items"]
    ranks = [int(answer["turns"][0].split()[2]) + 1 for answer in item["answers"]]
    assert rita.send("PUT", f"/{campaign['id']}/decisions/{item['id']}", {"ranks": ranks}).status_code == 204
    quality = world.owner.get(world.path(campaign, "/quality"))
    assert quality.status_code == 200, quality.text
    by = {row["annotator"]: row for row in quality.json()["annotators"]}
    assert [by[name]["qualification"] for name in ("ann", "bob", "eve")] == ["passed", "passed", "failed"]
    assert [by[name]["done"] for name in ("ann", "bob", "eve")] == [3, 3, 2]
    assert by["ann"]["items_per_hour"] == pytest.approx(3 * 3600 / 120)
    assert (by["ann"]["median_seconds"], by["bob"]["flagged"]) == (30.0, 1)
    # On two gold items Ann agrees with Bob and not with Eve; on the third she does not agree with Bob.
    assert (by["ann"]["agreement"], by["ann"]["shared_items"]) == (pytest.approx((0.5 + 0.5 + 0) / 3), 3)
    assert (by["eve"]["agreement"], by["eve"]["gold"], by["eve"]["gold_pairs"]) == (0.0, 0.0, 6)
    assert [by[name]["agreement_with_reviewers"] for name in ("ann", "bob", "eve")] == [1.0, 0.0, None]
    # Eve put six pairs of two prompts in the wrong order, which are no more evidence than two.
    wilson = proportion_interval(0, 6)
    assert by["eve"]["gold_low"] == 0
    assert wilson.high is not None
    assert by["eve"]["gold_high"] > wilson.high + 0.2
    share = proportion_interval(1, 3)
    assert [by["ann"][f"agreement_{end}"] for end in ("low", "high")] == pytest.approx([share.low, share.high])
    assert by["eve"]["agreement_with_reviewers_low"] is None
    (day,) = quality.json()["days"]
    assert (day["submissions"], day["annotators"]) == (8, 3)

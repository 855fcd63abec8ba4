from __future__ import annotations

import uuid
from typing import Any

import pytest
from ranking_world import RankingWorld
from sqlalchemy import select

from steerboard.accounts.tables import AuditEntry
from steerboard.evaluation.ranking.annotations import competition_ranks
from steerboard.evaluation.ranking.tables import RankingHistory
from steerboard.evaluation.tables import Evaluation


def history(world: RankingWorld) -> list[dict[str, Any]]:
    with world.sessions() as session:
        return list(session.scalars(select(RankingHistory.was).order_by(RankingHistory.id)))


def rankings(world: RankingWorld, campaign: Any) -> list[Any]:
    return world.owner.get(world.path(campaign, "/rankings")).json()["items"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [([1, 2, 3], [1, 2, 3]), ([1, 1, 2], [1, 1, 3]), ([4, 4, 8], [1, 1, 3]), ([2, 2, 2], [1, 1, 1])],
)
def test_ranks_are_kept_as_competition_ranks(given: list[int], kept: list[int]) -> None:
    assert competition_ranks(given, 3) == kept


def test_a_ranking_is_kept_under_the_names_that_the_annotator_never_saw(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign()
    ann = world.annotator("ann")
    task = ann.first(campaign)
    assert ann.submit(task, [2, 1, 2], comment="B is short", flag="odd prompt").json() == {"left": 0, "done": 1}
    (kept,) = rankings(world, campaign)
    said = {answer["turns"][0]: rank for answer, rank in zip(task["answers"], [2, 1, 2], strict=True)}
    assert kept["ranks"] == {name: said[f"text 0 {place} 0"] for place, name in enumerate(campaign["entrants"])}
    assert [kept[field] for field in ("annotator", "comment", "flag", "seconds", "position")] == [
        "ann",
        "B is short",
        "odd prompt",
        4.0,
        0,
    ]
    (flag,) = world.owner.get(world.path(campaign, "/flags")).json()["items"]
    assert (flag["kind"], flag["reason"], flag["annotator"]) == ("flag", "odd prompt", "ann")


def test_the_same_submission_again_changes_nothing(world: RankingWorld) -> None:
    world.evaluation(prompts=2)
    campaign = world.campaign(overlap=2)
    ann = world.annotator("ann")
    task = ann.first(campaign)
    first = ann.submit(task, [1, 2, 3], key="one-and-the-same")
    again = ann.submit(task, [3, 2, 1], key="one-and-the-same")
    assert (first.json(), again.status_code, again.json()) == ({"left": 1, "done": 1}, 200, {"left": 1, "done": 1})
    assert world.figures(campaign)["rankings"] == 1
    assert [task.ranks for task in world.tasks()] == [[1, 2, 3]]
    other = ann.submit(task, [3, 2, 1])
    assert (other.status_code, other.json()["code"]) == (409, "task_ended")
    with world.sessions() as session:
        assert session.scalars(select(AuditEntry.action).where(AuditEntry.actor == "user:ann")).all()[-1:] == [
            "ranking.submit"
        ]
        assert session.scalar(select(Evaluation.version)) == 3


def test_an_undone_submission_is_the_draft_again_and_a_late_copy_of_it_does_not_count(world: RankingWorld) -> None:
    world.evaluation(prompts=2)
    campaign = world.campaign()
    ann, bob = world.annotator("ann"), world.annotator("bob")
    task = ann.first(campaign)
    ann.submit(task, [3, 1, 2], key="submission-1", comment="sure", flag="look")
    again = ann.undo(task)
    assert again.status_code == 200
    draft = again.json()["draft"]
    assert (draft["ranks"], draft["comment"], draft["flag"]) == ({"A": 3, "B": 1, "C": 2}, "sure", "look")
    assert [answer["turns"] for answer in again.json()["answers"]] == [answer["turns"] for answer in task["answers"]]
    assert world.figures(campaign)["rankings"] == 0
    assert ann.undo(task).json()["draft"] == again.json()["draft"]
    assert ann.submit(task, [3, 1, 2], key="submission-1").json() == {"left": 2, "done": 0}
    assert bob.first(campaign)["prompt"] != task["prompt"]
    assert ann.submit(task, [1, 2, 3], key="submission-2").json() == {"left": 1, "done": 1}
    (was,) = history(world)
    assert (was["event"], was["ranks"], was["comment"], was["flag"]) == ("undone", [3, 1, 2], "sure", "look")
    assert [task.flag for task in world.tasks() if task.state == "submitted"] == [None]


def test_earlier_submissions_are_listed_newest_first_and_can_be_undone_too(world: RankingWorld) -> None:
    world.evaluation(prompts=3)
    campaign = world.campaign()
    ann = world.annotator("ann")
    tasks = [ann.first(campaign)]
    ann.submit(tasks[0], [1, 1, 1])
    tasks.append(ann.first(campaign))
    ann.skip(tasks[1], "no idea")
    mine = ann.send("GET", f"/mine?campaign={campaign['id']}").json()["items"]
    assert [(task["id"], task["state"]) for task in mine] == [
        (tasks[1]["id"], "skipped"),
        (tasks[0]["id"], "submitted"),
    ]
    assert (mine[1]["ranks"], mine[0]["skip_reason"]) == ({"A": 1, "B": 1, "C": 1}, "no idea")
    assert mine[1]["prompt"] == tasks[0]["prompt"]["messages"][-1]["content"]
    assert ann.undo(tasks[0]).json()["draft"]["ranks"] == {"A": 1, "B": 1, "C": 1}
    assert ann.first(campaign)["id"] == tasks[0]["id"]
    assert world.annotator("bob").send("GET", "/mine").json() == {"items": []}


def test_a_ranking_whose_lock_ran_out_counts_as_long_as_its_place_is_free(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign()
    ann = world.annotator("ann")
    task = ann.first(campaign)
    world.expire()
    assert ann.submit(task).status_code == 200
    assert world.figures(campaign)["done_items"] == 1


def test_a_ranking_that_lost_its_place_is_refused_and_kept_once(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign()
    ann, bob = world.annotator("ann"), world.annotator("bob")
    task = ann.first(campaign)
    world.expire()
    theirs = bob.first(campaign)
    for _ in range(2):
        late = ann.submit(task, [3, 2, 1], key="late-one", comment="a lot of work")
        assert (late.status_code, late.json()["code"]) == (409, "lock_lost")
    assert ann.draft(task, ranks={"A": 1}).json()["code"] == "lock_lost"
    assert bob.submit(theirs).status_code == 200
    (kept,) = history(world)
    assert (kept["event"], kept["ranks"], kept["comment"]) == ("lock_lost", [3, 2, 1], "a lot of work")
    assert world.figures(campaign)["rankings"] == 1
    assert bob.undo(theirs).status_code == 200
    world.expire()
    assert ann.submit(task, [3, 2, 1], key="late-one").status_code == 200


def test_a_skipped_item_goes_to_others_and_never_comes_back(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign()
    ann, bob = world.annotator("ann"), world.annotator("bob")
    task = ann.first(campaign)
    assert ann.skip(task, key="skipped-1").json() == {"left": 0, "done": 0}
    assert ann.skip(task, key="skipped-1").status_code == 200
    assert ann.next(campaign)["state"] == "done"
    assert world.figures(campaign)["skipped_by_all"] == 1
    theirs = bob.first(campaign)
    assert world.figures(campaign)["skipped_by_all"] == 0
    taken = ann.undo(task)
    assert (taken.status_code, taken.json()["code"]) == (409, "lock_lost")
    assert bob.skip(theirs, "in French").status_code == 200
    figures = world.figures(campaign)
    assert (figures["skipped_by_all"], figures["done_items"]) == (1, 0)
    flags = world.owner.get(world.path(campaign, "/flags")).json()["items"]
    assert [(flag["kind"], flag["annotator"], flag["reason"]) for flag in flags] == [
        ("skip", "bob", "in French"),
        ("skip", "ann", "no idea"),
    ]
    assert ann.undo(task).status_code == 200
    assert ann.submit(task).status_code == 200


def test_a_draft_keeps_the_lock_and_ends_with_the_submission(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign(lock_seconds=10)
    ann = world.annotator("ann")
    task = ann.first(campaign)
    saved = ann.draft(task, ranks={"A": 1}, comment="so far")
    assert saved.json()["locked_until"] > task["locked_until"]
    assert ann.draft(task, ranks={"D": 1}).json()["code"] == "bad_ranks"
    assert ann.draft(task, ranks={"Z": 1}).status_code == 422
    assert ann.first(campaign)["draft"]["ranks"] == {"A": 1}
    ann.submit(task)
    late = ann.draft(task, ranks={"A": 1})
    assert (late.status_code, late.json()["code"]) == (409, "task_ended")


def test_every_criterion_is_a_ranking_of_its_own(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    criteria = [{"name": "richness", "description": "How much it says."}, {"name": "clarity"}]
    campaign = world.campaign(criteria=criteria)
    ann = world.annotator("ann")
    task = ann.first(campaign)
    assert [criterion["name"] for criterion in task["criteria"]] == ["richness", "clarity"]
    ann.draft(task, criteria_ranks={"richness": {"A": 1}})
    for wrong in ({}, {"richness": [1, 2, 3]}, {"richness": [1, 2, 3], "clarity": [1, 2]}, {"nothing": [1, 2, 3]}):
        body = {"criteria_ranks": wrong, "seconds": 1, "submission": "submission-1"}
        refused = ann.send("POST", f"/tasks/{task['id']}/submit", body)
        assert (refused.status_code, refused.json()["code"]) == (422, "bad_ranks")
    given = {"richness": [1, 2, 3], "clarity": [1, 1, 2]}
    body = {"criteria_ranks": given, "seconds": 1, "submission": "submission-1"}
    assert ann.send("POST", f"/tasks/{task['id']}/submit", body).status_code == 200
    (kept,) = rankings(world, campaign)
    assert kept["ranks"] is None
    assert sorted(kept["criteria_ranks"]["clarity"].values()) == [1, 1, 3]


@pytest.mark.parametrize("ranks", [[1, 2], [1, 2, 3, 4], None])
def test_a_ranking_that_is_not_complete_is_refused(world: RankingWorld, ranks: list[int] | None) -> None:
    world.evaluation(prompts=1)
    ann = world.annotator("ann")
    task = ann.first(world.campaign())
    body = {"ranks": ranks, "seconds": 1, "submission": "submission-1"}
    refused = ann.send("POST", f"/tasks/{task['id']}/submit", body)
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_ranks")


def test_a_task_of_somebody_else_is_not_there(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign()
    task, bob = world.annotator("ann").first(campaign), world.annotator("bob")
    for refused in (bob.submit(task), bob.skip(task), bob.undo(task), bob.draft(task), bob.undo({"id": uuid.uuid4()})):
        assert (refused.status_code, refused.json()["code"]) == (404, "unknown_task")


def test_the_answer_to_a_submission_brings_the_next_items_when_asked(world: RankingWorld) -> None:
    world.evaluation(prompts=4)
    campaign = world.campaign()
    ann = world.annotator("ann")
    task = ann.first(campaign)
    answer = ann.submit(task, key="submission-1", ahead=2).json()
    assert (answer["left"], answer["done"], answer["state"], len(answer["items"])) == (3, 1, "ready", 2)
    assert answer["items"] == ann.next(campaign, ahead=2)["items"]
    assert ann.submit(task, key="submission-1", ahead=2).json() == answer
    ann.submit(answer["items"][0], [1, 1, 1])
    world.owner.patch(world.path(campaign), json={"state": "paused"})
    last = ann.submit(answer["items"][1], ahead=3).json()
    assert (last["items"], last["state"], last["left"]) == ([], "paused", 1)


def test_who_may_not_rank_hears_that_before_what_is_wrong_with_the_body(world: RankingWorld) -> None:
    viewer = world.annotator("eve", role="viewer")
    refused = viewer.send("POST", f"/tasks/{uuid.uuid4()}/submit", {"ranks": "nonsense"})
    assert (refused.status_code, refused.json()["code"]) == (403, "missing_scope")
    viewer.client.cookies.clear()
    stranger = viewer.send("POST", f"/tasks/{uuid.uuid4()}/submit", {})
    assert (stranger.status_code, stranger.json()["code"]) == (401, "unauthenticated")
    ann = world.annotator("ann")
    assert ann.send("POST", f"/tasks/{uuid.uuid4()}/submit", {}).status_code == 422
    del ann.client.headers["X-CSRF-Token"]
    forged = ann.send("POST", f"/tasks/{uuid.uuid4()}/undo")
    assert (forged.status_code, forged.json()["code"]) == (403, "csrf_failed")

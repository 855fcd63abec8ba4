"""Notices in the dashboard's bell: which events they report, to whom, and how far someone has read."""

from __future__ import annotations

from typing import Any

import pytest
from notice_world import NoticeWorld
from sqlalchemy import text

from steerboard.accounts import members
from steerboard.accounts.tables import Project, User
from steerboard.marks.hooks import Mention
from steerboard.notices import delivery, feed
from steerboard.notices.mentions import write_mention
from steerboard.platform.database import new_id, transaction
from steerboard.runs.hooks import News
from steerboard.runs.state.announcements import note_news

NOTICES = "/api/v1/projects/default/notices"


def listed(world: NoticeWorld, **asked: Any) -> list[dict[str, Any]]:
    answer = world.client.get(NOTICES, params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


def unread(world: NoticeWorld) -> dict[str, int]:
    return world.client.get(f"{NOTICES}/unread").json()


def mention(world: NoticeWorld, *names: str) -> None:
    with transaction(world.sessions) as session:
        about = {"about": "run sft-1", "path": "/runs/1", "author": "ada", "text": "look"}
        write_mention(session, Mention(world.project.id, new_id(), names=names, **about))


def test_ends_are_told_of_without_any_rule_with_the_page_that_shows_them(world: NoticeWorld) -> None:
    good, bad = world.run("good"), world.run("bad")
    world.work()
    world.work(fail="out_of_memory")
    second, first = listed(world)
    assert (first["event"], first["title"], first["path"]) == ("run.succeeded", "Run good succeeded", f"/runs/{good}")
    assert (second["title"], second["path"]) == ("Run bad failed", f"/runs/{bad}")
    assert "it went wrong" in second["reason"]


def test_a_pipeline_is_one_notice_and_each_stage_that_failed_another(world: NoticeWorld) -> None:
    pipeline = world.pipeline("a", "b", "c")
    world.work()
    world.work(fail="bad_input")
    world.work()
    whole, stage = listed(world)
    assert (whole["title"], whole["path"]) == ("Pipeline rlhf-1 failed", f"/pipelines/{pipeline}")
    assert (stage["event"], stage["title"]) == ("run.failed", "Run rlhf-1.b failed")


def test_what_is_read_stays_read_and_what_comes_later_is_not(world: NoticeWorld) -> None:
    world.run("one")
    world.work()
    assert unread(world) == {"notices": 1, "mentions": 0}
    (first,) = listed(world)
    assert first["unread"]
    for until in (first["id"], 0):  # another window that has read less changes nothing
        assert world.client.post(f"{NOTICES}/read", json={"until": until}).status_code == 204
        assert unread(world) == {"notices": 0, "mentions": 0}
    world.run("two")
    world.work()
    assert [row["unread"] for row in listed(world)] == [True, False]
    assert unread(world)["notices"] == 1


@pytest.mark.parametrize("until", [-1, 2**63, "x", None])
def test_a_place_that_no_notice_can_have_is_refused(world: NoticeWorld, until: object) -> None:
    assert world.client.post(f"{NOTICES}/read", json={"until": until}).status_code == 422


def test_a_mention_is_told_of_and_counted_for_whom_it_names(world: NoticeWorld) -> None:
    with transaction(world.sessions) as session:
        members.add(session, session.get_one(Project, world.project.id), "bob", "viewer")
        owner = session.query(User).order_by(User.created_at).first()
        assert owner is not None
        me = owner.name
    mention(world, "bob")
    mention(world, me, "bob")
    assert unread(world) == {"notices": 2, "mentions": 1}
    (mine,) = listed(world, mentions=True)
    assert (mine["title"], mine["mentions_you"], mine["reason"]) == (
        f"ada mentions @{me}, @bob on run sft-1",
        True,
        "look",
    )
    assert [row["mentions_you"] for row in listed(world)] == [True, False]


def test_a_verdict_is_told_of_once(world: NoticeWorld) -> None:
    for once in ("gate 1", "gate 1", "gate 2"):
        with transaction(world.sessions) as session:
            about = {"id": "1", "name": "judged", "state": "failed", "reason": "too low"}
            note_news(session, News(world.project.id, "gate.failed", about, path="/evaluations/1", once=once))
    assert [row["title"] for row in listed(world)] == ["Gate judged failed"] * 2


def test_what_is_undone_is_not_told_of(world: NoticeWorld) -> None:
    with world.sessions() as session:
        session.get_one(Project, world.project.id)
        note_news(session, News(world.project.id, "campaign.done", {"name": "c"}, path="/x"))
        session.rollback()
        session.commit()
    assert listed(world) == []


def test_pages_follow_each_other(world: NoticeWorld) -> None:
    for name in "abc":
        world.run(name)
        world.work()
    page = world.client.get(NOTICES, params={"limit": 2}).json()
    rest = world.client.get(NOTICES, params={"limit": 2, "cursor": page["next"]}).json()
    assert [row["title"][4] for row in page["items"] + rest["items"]] == ["c", "b", "a"]


def test_notices_are_kept_for_a_month(world: NoticeWorld) -> None:
    for name in "ab":
        world.run(name)
        world.work()
    with transaction(world.sessions) as session:
        session.execute(
            text("UPDATE notices SET created_at = created_at - interval '31 days' WHERE data->>'name' = 'a'")
        )
        delivery.forget_old(session)
    assert [row["title"] for row in listed(world)] == ["Run b succeeded"]


def test_no_more_than_a_hundred_are_counted(world: NoticeWorld) -> None:
    with transaction(world.sessions) as session:
        project = session.get_one(Project, world.project.id)
        for _ in range(feed.MOST_COUNTED + 5):
            feed.add(session, project, "run.failed", {"name": "x", "path": "/runs/1"})
    assert unread(world) == {"notices": feed.MOST_COUNTED, "mentions": 0}

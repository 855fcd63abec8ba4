"""What is left to do in an evaluation: campaigns among it, for the page, the gate and those who rank."""

from __future__ import annotations

import uuid

from evaluation_world import SHORT, EvaluationWorld
from sqlalchemy import update
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.evaluation.judge_tables import Judge
from steerboard.evaluation.ranking.tables import Campaign, RankingItem, RankingTask
from steerboard.insights.inbox import waiting
from steerboard.platform.database import transaction


def ranked(world: EvaluationWorld, overlap: int = 1) -> str:
    """An evaluation with two entrants and a campaign over its two prompts. The campaign's id."""
    world.evaluate("eval", {"model": "sft", "decoding": SHORT}, {"model": "dt", "decoding": SHORT})
    world.work_off()
    return str(world.post("evaluations/eval/campaigns", {"name": "round-1", "overlap": overlap})["id"])


def rank(world: EvaluationWorld, campaign: str, items: int) -> None:
    """Gives this many items their rankings."""
    with transaction(world.sessions) as session:
        some = session.query(RankingItem.id).filter_by(campaign_id=uuid.UUID(campaign)).limit(items).all()
        for (id_,) in some:
            session.execute(update(RankingItem).where(RankingItem.id == id_).values(rankings=1))


def submit(session: Session, item: RankingItem | None, user: uuid.UUID) -> None:
    assert item is not None
    about = {"campaign_id": item.campaign_id, "item_id": item.id, "user_id": user}
    session.add(RankingTask(**about, shown=[], state="submitted", ranks=[1, 2]))
    item.rankings += 1


def test_a_campaign_with_items_left_keeps_an_evaluation_open(world: EvaluationWorld) -> None:
    campaign = ranked(world)
    assert world.detail()["unfinished"] == ["2 of 2 items of campaign round-1 are still to be ranked"]
    rank(world, campaign, 1)
    world.client.patch(world.url(f"evaluations/eval/campaigns/{campaign}"), json={"state": "paused"})
    assert world.detail()["unfinished"] == ["1 of 2 items of campaign round-1 are still to be ranked (it is paused)"]
    world.client.patch(world.url(f"evaluations/eval/campaigns/{campaign}"), json={"state": "closed"})
    assert world.detail()["unfinished"] == []


def test_open_campaigns_wait_for_those_who_rank_and_tell_them_nothing_else(world: EvaluationWorld) -> None:
    campaign = ranked(world)
    with transaction(world.sessions) as session:
        project = session.get_one(Project, world.project.id)
        for_annotators = waiting(session, project, frozenset(("rank",))).items
        for_viewers = waiting(session, project, frozenset(("read",))).items
    (item,) = for_annotators
    assert (item.kind, item.title, item.detail) == ("campaign", "Rank answers: round-1", "2 of 2 items are left")
    assert (item.link.page, str(item.link.id)) == ("campaign", campaign)
    assert "eval" not in item.model_dump_json()
    assert for_viewers == []
    rank(world, campaign, 2)
    assert world.get("waiting")["items"] == []


def test_what_someone_has_ranked_is_not_left_for_them_though_others_still_rank_it(world: EvaluationWorld) -> None:
    campaign = ranked(world, overlap=2)
    ann, ben = (world.user(name, "annotator").id for name in ("ann", "ben"))

    def left(user: uuid.UUID) -> list[str]:
        with transaction(world.sessions) as session:
            project = session.get_one(Project, world.project.id)
            return [item.detail for item in waiting(session, project, frozenset(("rank",)), user).items]

    for number in (1, 2):
        with transaction(world.sessions) as session:
            items = session.query(RankingItem).filter_by(campaign_id=uuid.UUID(campaign), rankings=0)
            submit(session, items.first(), ann)
        mine = ["1 of 2 items are left for you"] if number == 1 else []
        assert (left(ann), left(ben)) == (mine, ["2 of 2 items are left for you"])


def test_annotators_are_not_told_of_failures(world: EvaluationWorld) -> None:
    world.evaluate()
    world.fail_next()
    with transaction(world.sessions) as session:
        project = session.get_one(Project, world.project.id)
        assert waiting(session, project, frozenset(("rank",))).items == []
        assert len(waiting(session, project, frozenset(("read",))).items) == 1


def test_what_people_ranked_is_not_deleted(world: EvaluationWorld) -> None:
    campaign = ranked(world)
    user = world.user("ann", "annotator")
    with transaction(world.sessions) as session:
        submit(session, session.query(RankingItem).filter_by(campaign_id=uuid.UUID(campaign)).first(), user.id)
    refused = world.client.delete(world.url("evaluations/eval"))
    assert (refused.status_code, refused.json()["code"]) == (409, "in_use")
    with transaction(world.sessions) as session:
        session.execute(update(RankingTask).values(state="locked"))
    assert world.client.delete(world.url("evaluations/eval")).status_code == 204
    with transaction(world.sessions) as session:
        assert session.query(Campaign).count() == 0


def test_an_imported_judge_has_nothing_left_to_do(world: EvaluationWorld) -> None:
    made = world.evaluate()
    world.work_off()
    with transaction(world.sessions) as session:
        session.add(
            Judge(
                evaluation_id=uuid.UUID(made["id"]),
                name="gpt-4",
                style="single",
                model="gpt-4",
                settings={},
                imported={"rows": 1},
                created_by="tester",
            )
        )
    detail = world.detail()
    assert (detail["unfinished"], world.get("evaluations")["items"][0]["judges"]) == ([], 1)

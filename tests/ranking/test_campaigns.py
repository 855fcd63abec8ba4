from __future__ import annotations

import uuid

import pytest
from ranking_world import NAMES, PROJECT, RankingWorld
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import AuditEntry
from steerboard.evaluation.ranking.tables import RankingItem
from steerboard.evaluation.tables import Entrant, Evaluation, Response
from steerboard.platform.database import transaction
from steerboard.platform.events.tables import Event
from support.servers.app_client import AppClient


def entrant(session: Session, name: str) -> Entrant:
    return session.scalars(select(Entrant).where(Entrant.name == name)).one()


def test_a_campaign_asks_about_the_prompts_that_all_of_its_entrants_have_answered(world: RankingWorld) -> None:
    world.evaluation(prompts=5)
    with transaction(world.sessions) as session:
        walrus = entrant(session, "walrus-sft").id
        session.execute(delete(Response).where(Response.entrant_id == walrus, Response.position < 2))
    assert world.campaign()["items"] == 3
    two = world.campaign(entrants=["heron-dt", "zebra-raw"], limit=4)
    assert (two["items"], two["entrants"], two["name"]) == (4, ["heron-dt", "zebra-raw"], "ranking-2")
    with transaction(world.sessions) as session:
        session.execute(delete(Response).where(Response.entrant_id == walrus))
    assert world.campaign(status=409)["code"] == "answers_missing"
    assert [
        campaign["name"] for campaign in world.owner.get(f"{PROJECT}/evaluations/quokka-eval/campaigns").json()["items"]
    ] == [
        "ranking-1",
        "ranking-2",
    ]


def test_no_two_campaigns_of_a_project_share_a_name_that_nobody_chose(world: RankingWorld) -> None:
    world.evaluation("quokka-eval")
    world.evaluation("numbat-eval")

    def made(evaluation: str, **given: str) -> str:
        answer = world.owner.post(f"{PROJECT}/evaluations/{evaluation}/campaigns", json=given)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["name"])

    assert [made(evaluation) for evaluation in ("quokka-eval", "numbat-eval", "quokka-eval")] == [
        "ranking-1",
        "ranking-2",
        "ranking-3",
    ]
    # A name that someone chose is free in its own evaluation.
    assert made("numbat-eval", name="ranking-1") == "ranking-1"
    assert made("numbat-eval") == "ranking-4"


def test_a_limit_draws_prompts_at_random(world: RankingWorld) -> None:
    world.evaluation(prompts=40)
    drawn = []
    for _ in range(2):
        made = world.campaign(limit=10)
        with world.sessions() as session:
            mine = select(RankingItem.position).where(RankingItem.campaign_id == uuid.UUID(made["id"]))
            drawn.append(set(session.scalars(mine)))
    assert [len(positions) for positions in drawn] == [10, 10]
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize(
    ("given", "status", "code"),
    [
        ({"entrants": ["heron-dt", "nobody"]}, 404, "unknown_entrant"),
        ({"entrants": ["heron-dt", "heron-dt"]}, 422, "bad_entrants"),
        ({"entrants": ["heron-dt"]}, 422, "bad_entrants"),
        ({"entrants": []}, 422, "invalid_request"),
        ({"task_type": "pairwise", "entrants": list(NAMES[:3])}, 422, "bad_entrants"),
        ({"task_type": "correction", "entrants": list(NAMES[:2])}, 422, "bad_entrants"),
        ({"task_type": "likert"}, 422, "invalid_request"),
        ({"task_type": "likert", "criteria": [{"name": "x", "points": 11}]}, 422, "invalid_request"),
        ({"task_type": "pairwise", "criteria": [{"name": "x"}]}, 422, "invalid_request"),
        ({"criteria": [{"name": "x", "points": 5}]}, 422, "invalid_request"),
        ({"criteria": [{"name": "x"}, {"name": "x "}]}, 422, "invalid_request"),
        ({"overlap": 0}, 422, "invalid_request"),
        ({"name": "no name"}, 422, "invalid_name"),
        ({"name": "taken"}, 409, "name_taken"),
    ],
)
def test_a_campaign_that_makes_no_sense_is_refused(
    world: RankingWorld, given: dict[str, object], status: int, code: str
) -> None:
    world.evaluation(prompts=1)
    world.campaign(name="taken")
    assert world.campaign(status=status, **given)["code"] == code


def test_of_more_than_eight_entrants_eight_can_be_ranked(world: RankingWorld) -> None:
    world.evaluation(prompts=1, names=tuple(f"model-{n}" for n in range(9)))
    assert world.campaign(status=422, entrants=[f"model-{n}" for n in range(9)])["code"] == "invalid_request"
    assert world.campaign()["entrants"] == [f"model-{n}" for n in range(8)]


def test_the_owner_sees_how_annotators_do_and_how_well_they_know_gold(world: RankingWorld) -> None:
    world.evaluation(prompts=4)
    campaign = world.campaign(overlap=2)
    ranks = dict(zip(campaign["entrants"], (1, 2, 2), strict=True))
    world.owner.put(world.path(campaign, "/gold/0"), json={"ranks": ranks})
    ann, bob = world.annotator("ann"), world.annotator("bob")
    for person, right in ((ann, True), (bob, False)):
        task = person.first(campaign)
        places = [answer["turns"][0].split()[2] for answer in task["answers"]]
        best, other = places.index("0"), places.index("1")
        given = [2, 2, 2]
        given[best if right else other] = 1
        assert person.submit(task, given, seconds=10.0).status_code == 200
    task = ann.first(campaign)
    ann.submit(task, seconds=30.0, flag="odd")
    ann.skip(ann.first(campaign))
    mine, theirs = world.figures(campaign)["annotators"]
    figures = ("annotator", "done", "skipped", "flagged", "median_seconds", "gold", "gold_pairs")
    assert [mine[field] for field in figures] == ["ann", 2, 1, 1, 20.0, 1.0, 2]
    # Bob ties one of the two pairs whose order is known and has the other the wrong way round.
    assert [theirs[field] for field in figures] == ["bob", 1, 0, 0, 10.0, 0.25, 2]
    out = world.figures(campaign)
    assert [out[field] for field in ("items", "done_items", "rankings", "gold_items")] == [4, 1, 3, 1]


def test_gold_ranks_name_every_entrant_of_an_item_that_there_is(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign()
    right = dict.fromkeys(campaign["entrants"], 1) | {campaign["entrants"][0]: 2}
    for position, ranks, code in (
        (0, {"heron-dt": 1}, "bad_gold"),
        (0, dict.fromkeys(right, 1), "bad_gold"),
        (0, right | {"nobody": 1}, "bad_gold"),
        (7, right, "unknown_item"),
    ):
        refused = world.owner.put(world.path(campaign, f"/gold/{position}"), json={"ranks": ranks})
        assert refused.json()["code"] == code
    assert world.owner.put(world.path(campaign, "/gold/0"), json={"ranks": right}).status_code == 200


def test_every_change_raises_the_evaluations_version_tells_its_readers_and_is_audited(world: RankingWorld) -> None:
    world.evaluation(prompts=2)
    campaign = world.campaign()
    world.owner.patch(world.path(campaign), json={"state": "paused"})
    world.owner.patch(world.path(campaign), json={"state": "open"})
    ann = world.annotator("ann")
    task = ann.first(campaign)
    ann.submit(task)
    ann.undo(task)
    with world.sessions() as session:
        assert session.scalar(select(Evaluation.version)) == 6
        told = [payload["what"] for payload in session.scalars(select(Event.payload).order_by(Event.id))]
        assert told == ["campaign", "campaign", "campaign", "ranking", "ranking"]
        actions = session.scalars(select(AuditEntry.action).order_by(AuditEntry.id)).all()
    assert [action for action in actions if "session" not in action] == [
        "campaign.create",
        "campaign.change",
        "campaign.change",
        "ranking.submit",
        "ranking.undo",
    ]


def test_a_link_signs_an_annotator_in_and_leads_to_the_campaign(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign()
    first = world.owner.post(world.path(campaign, "/annotators"), json={}).json()
    second = world.owner.post(world.path(campaign, "/annotators"), json={}).json()
    assert [first["annotator"], second["annotator"]] == ["annotator-1", "annotator-2"]
    with AppClient(world.app) as browser:
        signed_in = browser.post(first["link"], follow_redirects=False)
        assert signed_in.headers["location"] == f"/p/default/rank/{campaign['id']}"
        (mine,) = browser.get("/api/v1/session").json()["projects"]
        assert (mine["role"], mine["allows"]) == ("annotator", ["rank"])
        again = world.owner.post(world.path(campaign, "/annotators"), json={"name": "annotator-1"})
        assert (again.status_code, again.json()["link"] == first["link"]) == (201, False)
        assert browser.get("/api/v1/session").json()["code"] == "session_ended"
    world.annotator("carl", role="engineer")
    refused = world.owner.post(world.path(campaign, "/annotators"), json={"name": "carl"})
    assert (refused.status_code, refused.json()["code"]) == (409, "already_member")


@pytest.mark.parametrize("role", ["annotator", "viewer", "engineer"])
def test_who_may_ask_and_who_may_rank(world: RankingWorld, role: str) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign()
    someone = world.annotator("someone", role=role)
    codes = {
        "read": someone.client.get(world.path(campaign)).status_code,
        "change": someone.client.patch(world.path(campaign), json={"state": "open"}).status_code,
        "invite": someone.client.post(world.path(campaign, "/annotators"), json={}).status_code,
        "rank": someone.send("POST", f"/{campaign['id']}/next", {}).status_code,
    }
    assert (
        codes
        == {
            "annotator": {"read": 403, "change": 403, "invite": 403, "rank": 200},
            "viewer": {"read": 200, "change": 403, "invite": 403, "rank": 403},
            "engineer": {"read": 200, "change": 200, "invite": 403, "rank": 200},
        }[role]
    )


def test_another_projects_campaigns_and_evaluations_are_not_there(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    campaign = world.campaign()
    world.owner.post("/api/v1/projects", json={"name": "other"})
    other = "/api/v1/projects/other"
    task = world.annotator("ann").first(campaign)
    for path in (f"evaluations/quokka-eval/campaigns/{campaign['id']}", "evaluations/quokka-eval/campaigns"):
        assert world.owner.get(f"{other}/{path}").status_code == 404
    assert world.owner.post(f"{other}/rankings/{campaign['id']}/next", json={}).json()["code"] == "unknown_campaign"
    assert world.owner.post(f"{other}/rankings/tasks/{task['id']}/undo").json()["code"] == "unknown_task"
    assert world.owner.get(f"{other}/rankings").json() == {"campaigns": []}


def test_notices_tell_once_that_all_items_are_ranked(world: RankingWorld) -> None:
    rules = f"{PROJECT}/notice-rules"
    world.owner.post(rules, json={"name": "ci", "url": "https://ci.example/", "events": ["campaign.done"]})
    world.evaluation(prompts=2)
    campaign = world.campaign(overlap=2)
    world.annotator("ann").rank_all(campaign)
    told = f"{rules}/ci/deliveries"
    assert world.owner.get(told).json()["items"] == []
    bob = world.annotator("bob")
    bob.rank_all(campaign, most=1)
    assert world.owner.get(told).json()["items"] == []
    last = bob.first(campaign)
    bob.submit(last)
    bob.undo(last)
    bob.submit(last, key="again")
    (delivery,) = world.owner.get(told).json()["items"]
    assert delivery["payload"]["data"]["name"] == campaign["name"]
    assert delivery["payload"]["data"]["reason"] == "all 2 items are ranked"

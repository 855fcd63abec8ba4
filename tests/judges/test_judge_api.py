"""Judges over the API: settings, names, dry runs, deletion, pages of verdicts."""

from __future__ import annotations

from typing import Any

import pytest
from judge_world import PROJECT, JudgeWorld, post
from sqlalchemy import select, update

from steerboard.evaluation.judge_tables import JudgeAnswer, Verdict
from steerboard.evaluation.tables import Entrant, Evaluation
from steerboard.platform.database import transaction
from steerboard.runs.state import attempt_outcomes, claims, lifecycle
from steerboard.runs.tables import Run
from steerboard_contracts.run_config import RUN_CONFIG


def version(world: JudgeWorld) -> int:
    with transaction(world.sessions) as session:
        return session.scalars(select(Evaluation.version)).one()


@pytest.mark.parametrize(
    ("style", "given", "field"),
    [
        ("arena_hard", {}, "body.settings.baseline"),
        ("alpaca_eval", {"baseline": "nobody"}, "body.settings.baseline"),
        ("pairwise", {"entrants": ["anna"]}, "body.settings.entrants"),
        ("multi", {"entrants": ["anna", "nobody"]}, "body.settings.entrants"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_field(
    world: JudgeWorld, style: str, given: dict[str, Any], field: str
) -> None:
    world.evaluation()
    for dry_run in (False, True):
        answer = post(world, {"style": style, "endpoint": "gpt-judge", "settings": given}, dry_run=dry_run)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_judge")
        assert field in {place["location"] for place in answer.json()["errors"]}


@pytest.mark.parametrize(("rate", "status"), [(1e-300, 422), (0.009, 422), (0.01, 201)])
def test_a_judge_asks_at_least_once_in_a_hundred_minutes(world: JudgeWorld, rate: float, status: int) -> None:
    world.evaluation()
    body = {"style": "single", "endpoint": "gpt-judge", "settings": {"requests_per_minute": rate}}
    answer = post(world, body)
    assert answer.status_code == status, answer.text
    if status == 422:
        assert [place["location"] for place in answer.json()["errors"]] == ["body.settings.requests_per_minute"]


def test_names_are_free_or_found(world: JudgeWorld) -> None:
    world.evaluation()
    body = {"style": "single", "endpoint": "gpt-judge"}
    names = [post(world, body).json()["name"] for _ in range(2)]
    assert names == ["gpt-judge-single", "gpt-judge-single-2"]
    taken = post(world, {**body, "name": names[0]})
    assert (taken.status_code, taken.json()["code"]) == (409, "name_taken")
    assert post(world, {**body, "endpoint": "nobody"}).json()["code"] == "unknown_endpoint"
    missing = world.client.get(f"{PROJECT}/evaluations/e/judges/nobody")
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_judge")
    listed = world.client.get(f"{PROJECT}/evaluations/e/judges").json()["items"]
    assert [judge["name"] for judge in listed] == names


def test_a_dry_run_starts_nothing(world: JudgeWorld) -> None:
    world.evaluation(entrants=("a", "b", "c"), prompts=5, turns=2)
    before = version(world)
    for style, requests in (("multi", 10), ("single", 30), ("pairwise", 60), ("arena_hard", 20), ("alpaca_eval", 10)):
        body = {"style": style, "endpoint": "gpt-judge", "settings": {"baseline": "a"} if "_" in style else {}}
        answer = post(world, body, dry_run=True)
        assert (answer.status_code, answer.json()) == (200, {"requests": requests, "cached": 0, "most_cost": None})
    assert version(world) == before
    assert world.client.get(f"{PROJECT}/evaluations/e/judges").json()["items"] == []


def test_a_judge_raises_the_version_when_it_starts_says_something_and_ends(world: JudgeWorld) -> None:
    world.evaluation()
    world.judge("single", name="one")
    started = version(world)
    assert started > 0
    claim = world.claim()
    with transaction(world.sessions) as session:
        lifecycle.request_cancel(session, session.get_one(Run, claim.run_id), "tester")
        attempt_outcomes.cancel(session, claims.fenced(session, claim), 0.0)
    assert version(world) > started
    assert world.look("one")["state"] == "cancelled"


def test_a_judge_waits_for_answers_that_are_being_made(world: JudgeWorld) -> None:
    world.evaluation()
    with transaction(world.sessions) as session:
        upstream = lifecycle.create_run(
            session,
            world.project,
            name="answers",
            config=RUN_CONFIG.validate_python({"run": "mix", "parts": [{}]}),
            inputs={},
            created_by="tester",
            reuse=False,
        )
        session.execute(update(Entrant).where(Entrant.name == "anna").values(run_id=upstream.id))
    judge = world.judge("single", name="one")
    assert (judge["state"], judge["run"]["reason"]) == ("pending", "waiting for answers")


def test_a_judge_is_deleted_when_it_does_not_work_and_what_it_paid_for_stays(world: JudgeWorld) -> None:
    world.evaluation()
    world.judge("single", name="one")
    busy = world.client.delete(f"{PROJECT}/evaluations/e/judges/one")
    assert (busy.status_code, busy.json()["code"]) == (409, "in_use")
    world.work()
    assert world.client.delete(f"{PROJECT}/evaluations/e/judges/one").status_code == 204
    assert (world.count(Verdict), world.count(JudgeAnswer)) == (0, 4)
    again = world.judged("single", name="one")
    assert (again["requests"], again["cached"], again["ok"]) == (0, 4, 4)


def test_verdicts_come_in_pages(world: JudgeWorld) -> None:
    world.evaluation(prompts=4)
    world.judged("single", name="one")
    address = f"{PROJECT}/evaluations/e/judges/one/verdicts"
    page = world.client.get(address, params={"limit": 5}).json()
    rest = world.client.get(address, params={"limit": 5, "after": page["next"]}).json()
    assert [len(page["items"]), len(rest["items"]), rest["next"]] == [5, 3, None]
    ids = [row["id"] for row in page["items"] + rest["items"]]
    assert ids == sorted(set(ids))


def test_who_only_reads_starts_no_judge(world: JudgeWorld) -> None:
    world.evaluation()
    made = world.client.post(f"{PROJECT}/tokens", json={"name": "reader", "scopes": ["read"]})
    assert made.status_code == 201, made.text
    headers = {"Authorization": f"Bearer {made.json()['token']}"}
    body = {"style": "single", "endpoint": "gpt-judge"}
    refused = world.client.post(f"{PROJECT}/evaluations/e/judges", json=body, headers=headers)
    assert refused.status_code == 403
    assert world.client.get(f"{PROJECT}/evaluations/e/judges", headers=headers).status_code == 200

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest
from playground_world import PlaygroundWorld, model_processes, working
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.http import event_stream
from steerboard.accounts.service import revoke_token
from steerboard.app.main import create_app
from steerboard.platform.database import transaction
from steerboard.platform.events import wakeups
from steerboard.platform.settings import Settings
from steerboard_workers.interactive.worker import InteractiveWorker
from support.patience import PATIENCE, wait_until
from support.servers.served_app import served

LONG = {"max_new_tokens": 1500}


def column(score: float | None = None, model: str = "dt", **decoding: Any) -> dict[str, Any]:
    return {"model": model, "score": score, "decoding": {"max_new_tokens": 40, **decoding}}


@pytest.mark.long
def test_three_scores_are_streamed_side_by_side_and_end_with_rewards(
    world: PlaygroundWorld, worker: InteractiveWorker
) -> None:
    made = world.compare(column(-5), column(0.04), column(None), reward="reward")
    texts = {0: "", 1: "", 2: ""}
    last: dict[int, Any] = {}
    events = list(world.stream(made))
    for event, change in events[:-1]:
        assert event == "answer"
        place = change["place"]
        texts[place] = texts[place][: change["at"]] + change["text"]
        last[place] = change
    assert events[-1] == ("end", {})
    done = world.comparison(made)
    assert [answer["text"] for answer in done["columns"]] == [texts[0], texts[1], texts[2]]
    assert len(set(texts.values())) == 3, "the score changes the answer"
    assert [answer["score_text"] for answer in done["columns"]] == ["-5.00", "0.00", "5.00"]
    for answer in done["columns"]:
        assert (answer["state"], answer["tokens"], answer["finished"]) == ("succeeded", 40, False)
        assert 0 < answer["first_token_seconds"] <= answer["seconds"]
        assert answer["reward"] == last[answer["place"]]["reward"] is not None
        # The normaliser of this policy is about the rewards of another model.
        assert answer["reward_z"] is None
    assert len(events) > 8, "the answers came in pieces"
    assert done["reward_model"]["name"] == "reward"
    # Who comes late gets everything at once.
    again = list(world.stream(made))
    assert [change["text"] for _, change in again[:-1]] == [texts[0], texts[1], texts[2]]


def test_who_may_no_longer_read_loses_an_open_stream(world: PlaygroundWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "CHECK_SECONDS", 0.1)
    monkeypatch.setattr(event_stream, "LIFE_SECONDS", 20.0)
    monkeypatch.setattr(wakeups, "POLL_SECONDS", 0.1)
    url = world.address + world.path(f"comparisons/{world.compare(column(1))['id']}/stream")
    with httpx.stream("GET", url, headers=world.limited_token("read"), timeout=PATIENCE) as response:
        lines = response.iter_lines()
        assert "event: answer" in lines
        with transaction(world.sessions) as session:
            revoke_token(session, world.project, "other")
        began = time.monotonic()
        assert "event: end" not in list(lines)
    assert time.monotonic() - began < 19


@pytest.mark.long
def test_moving_one_slider_generates_only_that_column_again(world: PlaygroundWorld, worker: InteractiveWorker) -> None:
    first = world.finish(world.compare(column(1), column(2), reward="reward", seed=3))
    second = world.compare(column(2), column(3), reward="reward", seed=3)
    assert [(a["state"], a["reused"]) for a in second["columns"]] == [("succeeded", True), ("queued", False)]
    assert second["columns"][0]["text"] == first["columns"][1]["text"]
    assert second["columns"][0]["reward"] == first["columns"][1]["reward"]
    assert [a["state"] for a in world.finish(second)["columns"]] == ["succeeded", "succeeded"]
    for change in ({"seed": 4}, {"reward": None}, {"prompt": "say blue"}):
        other = world.compare(column(2), **{"reward": "reward", "seed": 3, **change})
        assert not other["columns"][0]["reused"], change


def test_an_answer_does_not_depend_on_its_place_or_its_neighbours(
    world: PlaygroundWorld, worker: InteractiveWorker
) -> None:
    sampled = {"temperature": 1.0, "top_p": 0.9}
    alone = world.finish(world.compare(column(5, **sampled), column(-5, **sampled), reward="reward"))
    two = world.finish(world.compare(column(0, **sampled), column(5, **sampled)))
    assert two["columns"][1]["text"] == alone["columns"][0]["text"] != alone["columns"][1]["text"]


def test_a_guided_column_is_another_answer_and_one_of_guidance_one_is_not(
    world: PlaygroundWorld, worker: InteractiveWorker
) -> None:
    asked = (column(5), column(5, guidance=8), column(5, guidance=1), column(-5, guidance=0), column(5, guidance=0))
    done = world.finish(world.compare(*asked))["columns"]
    plain, guided, guided_by_one, unasked, either = (answer["text"] for answer in done)
    assert (plain == guided_by_one, plain == guided, unasked == either) == (True, False, True)
    assert [answer["decoding"]["guidance"] for answer in done] == [1, 8, 1, 0, 0]


def test_guidance_is_refused_where_there_is_no_score_to_follow(world: PlaygroundWorld) -> None:
    problem = world.compare(column(1), column(model="sft", guidance=2), status=422)
    assert (problem["code"], "takes scores" in problem["hint"]) == ("no_guidance", False)
    assert "does not take scores" in problem["detail"]


def test_a_score_is_refused_where_no_model_understands_it(world: PlaygroundWorld) -> None:
    problem = world.compare(column(1), column(2.5, model="sft"), status=422)
    assert problem["code"] == "no_score_format"
    assert "columns[1]" in problem["detail"]
    assert world.compare(column(None, model="sft"))["columns"][0]["score_text"] is None
    assert world.compare(column(model="reward"), status=422)["code"] == "wrong_role"
    assert world.compare(column(1), reward="sft", status=422)["code"] == "wrong_role"
    assert world.compare(column(1, model="nobody"), status=404)["code"] == "unknown_model"
    assert world.compare(column(1), prompt="  ", status=422)["code"] == "invalid_request"
    assert world.compare(*[column(1)] * 9, status=422)["code"] == "invalid_request"


def test_a_cancelled_answer_stops_at_once_and_its_model_stays_loaded(
    world: PlaygroundWorld, worker: InteractiveWorker
) -> None:
    made = world.compare(column(1, **LONG), column(2, **LONG))
    wait_until(lambda: world.comparison(made)["columns"][0]["text"] != "")
    process = max(model_processes().values(), key=lambda process: process.cpu_times().user)
    cancelled = world.post(f"comparisons/{made['id']}/cancel", status=200)
    assert {answer["state"] for answer in cancelled["columns"]} == {"cancelled"}
    assert cancelled["columns"][0]["text"]
    assert world.finish(world.compare(column(3)))["columns"][0]["state"] == "succeeded"
    worked = process.cpu_times().user
    time.sleep(0.5)  # in which a model that still wrote would take far more than 0.1 s of a processor
    assert process.cpu_times().user - worked < 0.1
    assert world.comparison(made)["columns"] == cancelled["columns"]
    assert world.post(f"comparisons/{made['id']}/cancel", status=409)["code"] == "already_ended"


def test_one_bad_column_fails_alone_and_says_why(world: PlaygroundWorld, worker: InteractiveWorker) -> None:
    done = world.finish(world.compare(column(1, max_new_tokens=5000), column(2), reward="reward"))
    bad, good = done["columns"]
    assert (bad["state"], bad["error"]["code"]) == ("failed", "too_many_new_tokens")
    assert bad["error"]["hint"]
    assert (good["state"], good["error"]) == ("succeeded", None)


def test_without_a_worker_it_says_so_and_counts_what_is_ahead(world: PlaygroundWorld) -> None:
    made = [world.compare(column(score)) for score in (1, 2, 3)]
    assert "steerboard worker --pool interactive" in made[0]["columns"][0]["waits_for"]
    world.post(f"comparisons/{made[0]['id']}/cancel", status=200)
    assert world.comparison(made[0])["columns"][0]["waits_for"] is None
    listed = world.get("comparisons", limit=2)
    assert [item["id"] for item in listed["items"]] == [made[2]["id"], made[1]["id"]]
    assert listed["next"] is not None


def test_without_redis_answers_still_come(
    world: PlaygroundWorld, settings: Settings, sessions: sessionmaker[Session], token: str
) -> None:
    lonely = settings.model_copy(update={"redis_url": "redis://127.0.0.1:1", "poll_seconds": 0.2})
    with served(create_app(lonely, sessions=sessions)) as url, working(lonely):
        world.address = url
        made = world.compare(column(1))
        events = list(world.stream(made))
    assert events[-1][0] == "end"
    assert world.comparison(made)["columns"][0]["state"] == "succeeded"


def test_a_viewer_reads_and_cannot_generate(world: PlaygroundWorld) -> None:
    made = world.compare(column(1))
    viewer = world.limited_token("read")
    body = {"prompt": "hi", "columns": [column(1)]}
    assert world.post("comparisons", body, status=403, headers=viewer)["code"] == "missing_scope"
    assert world.post(f"comparisons/{made['id']}/cancel", status=403, headers=viewer)["code"] == "missing_scope"
    assert world.client.get(world.path(f"comparisons/{made['id']}"), headers=viewer).status_code == 200


def test_another_projects_comparison_is_not_there(world: PlaygroundWorld) -> None:
    made = world.compare(column(1))
    assert world.client.post("/api/v1/projects", json={"name": "other"}).status_code == 201
    for ending in ("", "/stream"):
        answer = world.client.get(f"/api/v1/projects/other/playground/comparisons/{made['id']}{ending}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_a_reward_whose_model_was_deleted_is_missed_and_not_left_out(
    world: PlaygroundWorld, settings: Settings
) -> None:
    made = world.compare(column(1), reward="reward")
    assert world.client.delete("/api/v1/projects/default/models/reward").status_code == 204
    with working(settings):
        answer = world.finish(made)["columns"][0]
    assert (answer["state"], answer["error"]["code"]) == ("failed", "unknown_model")
    assert answer["text"]


def test_a_policy_of_two_attributes_is_asked_for_either_both_or_none(
    world: PlaygroundWorld, worker: InteractiveWorker
) -> None:
    world.register("steered", "steered")
    asked = ["helpfulness:1", {"verbosity": 2.6}, "verbosity:2,helpfulness:9", "", None]
    columns = [{**column(model="steered"), "score": score} for score in asked]
    done = world.finish(world.compare(*columns))
    assert [(answer["score"], answer["score_text"]) for answer in done["columns"]] == [
        ("helpfulness:1", "helpfulness:1"),
        ("verbosity:2.6", "verbosity:3"),
        ("helpfulness:9,verbosity:2", "helpfulness:4,verbosity:2"),
        ("", ""),
        ("helpfulness:4", "helpfulness:4"),
    ]
    assert len({answer["text"] for answer in done["columns"]}) == 5, "every condition changes the answer"
    # What is asked for nothing is asked as a model that knows no attributes.
    plain = world.finish(world.compare(column(model="sft")))
    assert plain["columns"][0]["text"] == done["columns"][3]["text"]
    refused = world.compare({**column(model="steered"), "score": 5}, status=422)
    assert refused["code"] == "unknown_attribute"
    assert world.compare({**column(), "score": "helpfulness:1"}, status=422)["code"] == "unknown_attribute"
    assert world.compare({**column(), "score": "high"}, status=422)["code"] == "invalid_request"

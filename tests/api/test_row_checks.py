"""Rows are tokenised before a training run is started: equal checks are one, no list shows them, and what they find
warns or refuses."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from api_world import ApiWorld
from sqlalchemy import func, update

from steerboard.platform.database import transaction
from steerboard.runs.state import attempt_outcomes, claims
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.tables import Run

CUT = {"rows": 100, "checked": 100, "too_long_rows": 98, "max_length": 24, "refused_rows": 0, "refused": []}
REFUSED = {
    **CUT,
    "too_long_rows": 0,
    "refused_rows": 4,
    "refused": [{"row": row, "message": "roles must alternate"} for row in (3, 5, 7)],
}


def sft(**config: Any) -> dict[str, Any]:
    return {"config": {"run": "train", "method": "sft", **config}, "inputs": {"model": "tiny", "data": "texts"}}


@pytest.fixture(autouse=True)
def texts(world: ApiWorld) -> None:
    world.dataset("texts", "instructions", rows=101)


def ended(world: ApiWorld, summary: dict[str, Any]) -> None:
    """The next run that needs no device ends with what it has found."""
    with transaction(world.sessions) as session:
        given = {"pool": "default", "owner": "w", "worker": "w1", "devices": 1, "lease_seconds": 30.0}
        claim = claims.claim_next(session, **given, without_device=True)
        assert claim is not None
        attempt_outcomes.succeed(session, claims.fenced(session, claim), summary, 0.0)


def test_equal_checks_are_one_and_no_list_shows_them(world: ApiWorld) -> None:
    first = world.post("runs/row-check", sft(max_length=24))
    assert (first["state"], first["warning"], first["refusal"]) == ("queued", None, None)
    # What tokens rows have does not depend on these.
    again = world.post("runs/row-check", sft(max_length=24, lr=1e-3, epochs=3, batch=4, seed=7))
    assert again["run_id"] == first["run_id"]
    assert world.post("runs/row-check", sft(max_length=25))["run_id"] != first["run_id"]
    assert world.get("runs")["items"] == []
    generate = {"config": {"run": "generate", "prompts": ["Hi"]}, "inputs": {"model": "tiny"}}
    assert world.post("runs/row-check", generate) is None
    world.post("runs/row-check", sft(max_lenght=24), status=422)


def test_it_waits_for_no_device_and_is_offered_to_nobody(world: ApiWorld) -> None:
    world.post("runs/row-check", sft())
    with transaction(world.sessions) as session:
        given = {"pool": "default", "owner": "w", "worker": "w1", "devices": 1, "lease_seconds": 30.0}
        assert claims.claim_next(session, **given, without_device=False) is None
    ended(world, CUT)
    assert "check_rows" not in {card["kind"] for card in world.get("schemas")}
    body = {"config": {"run": "check_rows", "training": sft()["config"]}, "inputs": sft()["inputs"]}
    world.post("runs", body, status=422)


def test_rows_that_would_be_cut_are_warned_of_before_and_when_the_run_is_launched(world: ApiWorld) -> None:
    assert world.post("runs/estimate", sft(max_length=24))["warnings"] == []
    world.post("runs/row-check", sft(max_length=24))
    ended(world, CUT)
    check = world.post("runs/row-check", sft(max_length=24))
    assert (check["state"], check["rows"], check["checked"], check["too_long"]) == ("succeeded", 100, 100, 98)
    words = (
        "98% of the 100 rows of texts that were checked have more than 24 tokens, and would be cut. Raise max_length "
        "to learn from them as they are."
    )
    shown = [
        [check["warning"]],
        world.post("runs/estimate", sft(max_length=24, lr=1e-3))["warnings"],
        world.post("runs", sft(max_length=24), status=201)["warnings"],
    ]
    assert [[(warning["level"], warning["message"]) for warning in each] for each in shown] == [
        [("serious", words)]
    ] * 3
    assert world.post("runs/estimate", sft(max_length=99))["warnings"] == []


def test_rows_that_the_template_refuses_stop_the_launch(world: ApiWorld) -> None:
    world.post("runs/row-check", sft())
    ended(world, REFUSED)
    for path in ("runs/estimate", "runs"):
        (fault,) = world.post(path, sft(lr=1e-3), status=422)["errors"]
        assert fault["location"] == "inputs.data"
        assert "refuses 4 of 100 rows of `texts` that were checked: row 3: roles must alternate" in fault["message"]
    assert world.post("runs/row-check", sft())["refusal"] == fault["message"]
    world.post("runs", sft(template="plain"), status=201)
    assert world.post("runs/row-check", sft(too_long="refuse"))["refusal"] is None


def test_a_check_that_was_cancelled_is_made_again(world: ApiWorld) -> None:
    first = world.post("runs/row-check", sft())
    world.post(f"runs/{first['run_id']}/cancel")
    assert world.post("runs/row-check", sft())["run_id"] != first["run_id"]


def test_a_check_that_fails_is_shown_so_to_who_asks_until_it_has_ended(world: ApiWorld) -> None:
    first = world.post("runs/row-check", sft())
    with transaction(world.sessions) as session:
        given = {"pool": "default", "owner": "w", "worker": "w1", "devices": 1, "lease_seconds": 30.0}
        claim = claims.claim_next(session, **given, without_device=True)
        assert claim is not None
        failure = Failure("bad_input", "no template")
        attempt_outcomes.fail(session, claims.fenced(session, claim), failure, 0.0, 0.0)
    check = world.post("runs/row-check", sft())
    assert (check["run_id"], check["state"]) == (first["run_id"], "failed")
    with transaction(world.sessions) as session:
        session.execute(update(Run).values(ended_at=func.now() - timedelta(minutes=2)))
    assert world.post("runs/row-check", sft())["run_id"] != first["run_id"]

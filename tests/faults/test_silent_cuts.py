"""The network between a worker and Postgres, or Redis, is cut without a word, in the middle of a run."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from fault_stack import SFT, Stack, Worker
from sqlalchemy import make_url

from support.servers.forwarder import Forwarder

# Some 15 seconds on a free machine.
LONGER = SFT | {"epochs": 30, "checkpoint_every": 40}
LONGEST = LONGER | {"epochs": 60}
# Looking and sweeping cannot help within a test then: only a wake-up can.
NEVER = {"STEERBOARD_POLL_SECONDS": "600", "STEERBOARD_SWEEP_SECONDS": "600"}
KINDS = ["frozen", "forgotten"]


@pytest.fixture
def database(stack: Stack) -> Iterator[Forwarder]:
    """A forwarder between workers and Postgres; this process is not cut off."""
    url = make_url(stack.environment["STEERBOARD_DATABASE_URL"])
    host = url.query.get("host")
    forwarder = Forwarder(f"{host}/.s.PGSQL.{url.query.get('port', 5432)}" if host else str(url.port or 5432))
    cut = url.set(host="127.0.0.1", port=forwarder.port).difference_update_query(["host", "port"])
    stack.environment["STEERBOARD_DATABASE_URL"] = cut.render_as_string(hide_password=False)
    yield forwarder
    stack.stop_workers()
    forwarder.stop()


@pytest.fixture
def broker(stack: Stack) -> Iterator[Forwarder]:
    """A forwarder between workers and Redis; this process is not cut off."""
    url = stack.environment["STEERBOARD_REDIS_URL"]
    parts = urlsplit(url)
    forwarder = Forwarder(parts.path if parts.scheme == "unix" else str(parts.port or 6379))
    stack.environment["STEERBOARD_REDIS_URL"] = f"redis://127.0.0.1:{forwarder.port}/{_database(url)}"
    yield forwarder
    stack.stop_workers()
    forwarder.stop()


def _database(url: str) -> str:
    parts = urlsplit(url)
    return parts.query.partition("db=")[2] or "0" if parts.scheme == "unix" else parts.path.strip("/") or "0"


def begin(stack: Stack, config: dict[str, Any] = LONGER, **environment: str) -> tuple[uuid.UUID, Worker]:
    """A run in its middle."""
    run_id = stack.create("sft", config)
    worker = stack.start_worker("only", **environment)
    stack.wait_for_step(run_id, 80)
    return run_id, worker


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_of_postgres_that_is_shorter_than_the_lease_costs_nothing(
    stack: Stack, database: Forwarder, kind: str
) -> None:
    expected = stack.undisturbed(LONGER)
    run_id, _ = begin(stack, STEERBOARD_LEASE_SECONDS="40")
    with database.cut(kind):
        time.sleep(15)  # well within the lease
    (run,) = stack.finish(run_id)
    assert (run.state, run.attempt) == ("succeeded", 1), run.reason
    assert stack.timeline(run_id) == ["pending", "queued", "running", "succeeded"]
    assert stack.result(run_id) == expected


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_that_was_cut_off_from_postgres_for_longer_ends_its_stage_and_another_one_goes_on(
    stack: Stack, database: Forwarder, kind: str
) -> None:
    """Thirty seconds, with a lease of six: nothing is lost or done twice."""
    expected = stack.undisturbed(LONGEST)
    run_id, cut_off = begin(stack, LONGEST, STEERBOARD_LEASE_SECONDS="6")
    with database.cut(kind):
        cut = time.monotonic()
        stack.wait(lambda: not stack.stage_pids(run_id), 15, "the stage outlived its lease")
        assert time.monotonic() - cut > 3, "the stage was ended while its lease was good"
        time.sleep(max(0, 30 - (time.monotonic() - cut)))  # past all timeouts of the connection
    stack.start_worker("other", STEERBOARD_LEASE_SECONDS="6")
    (run,) = stack.finish(run_id)
    assert (run.state, run.attempt) == ("succeeded", 2), run.reason
    assert stack.timeline(run_id) == ["pending", "queued", "running", "queued", "running", "succeeded"]
    assert stack.result(run_id) == expected
    # And the one that was cut off works again.
    stack.workers[-1].stop()
    (run,) = stack.finish(stack.create("next", SFT))
    assert run.state == "succeeded", cut_off.log.read_text()[-2000:]


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_of_redis_costs_nothing_and_wake_ups_are_heard_again(stack: Stack, broker: Forwarder, kind: str) -> None:
    expected = stack.undisturbed(LONGER)
    run_id, _ = begin(stack, **NEVER)
    with broker.cut(kind):
        time.sleep(30)  # past all timeouts of the connection
    (run,) = stack.finish(run_id)
    assert (run.state, run.attempt) == ("succeeded", 1), run.reason
    assert stack.result(run_id) == expected
    (run,) = stack.finish(stack.create("next", SFT), seconds=60)
    assert run.state == "succeeded", run.reason

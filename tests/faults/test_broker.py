"""The broker is restarted, emptied, away, or repeats itself: Postgres knows better."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_stack import SFT, Stack

from steerboard.platform.events.redis_url import connect
from steerboard.platform.processes.embedded import EmbeddedServers
from steerboard.platform.settings import get_settings
from steerboard.runs.state import wakeups

QUICK = {**SFT, "max_steps": 4, "checkpoint_every": 0}
# Looking and sweeping cannot help within a test then: only a wake-up can.
NEVER = {"STEERBOARD_POLL_SECONDS": "600", "STEERBOARD_SWEEP_SECONDS": "600"}


@pytest.fixture
def broker(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedServers]:
    """A broker that this test may hurt; the stack and this process use it."""
    home = Path(tempfile.mkdtemp(prefix="sb-"))
    servers = EmbeddedServers(home)
    servers.start(postgres=False)
    stack.environment["STEERBOARD_REDIS_URL"] = servers.redis_url
    monkeypatch.setenv("STEERBOARD_REDIS_URL", servers.redis_url)
    get_settings.cache_clear()
    yield servers
    stack.stop_workers()
    servers.stop()
    shutil.rmtree(home, ignore_errors=True)


def connected(stack: Stack, times: int) -> None:
    log = stack.workers[-1].log
    stack.wait(lambda: log.read_text().count("Connected to") >= times, 30, "the worker did not connect")


@pytest.mark.long
def test_runs_created_while_the_broker_is_away_finish_and_so_does_the_one_under_way(
    stack: Stack, broker: EmbeddedServers
) -> None:
    first = stack.create("first", SFT)
    stack.start_worker("only")
    stack.wait_for_step(first, 4)
    broker.stop()
    second = stack.create("second", QUICK)
    runs = stack.finish(first, second)
    assert [(run.state, run.attempt) for run in runs] == [("succeeded", 1), ("succeeded", 1)]


@pytest.mark.long
def test_a_worker_hears_wake_ups_again_after_the_broker_was_restarted(stack: Stack, broker: EmbeddedServers) -> None:
    stack.start_worker("only", **NEVER)
    connected(stack, 1)
    broker.stop()
    time.sleep(0.5)  # an outage, not only a lost connection
    broker.start(postgres=False)
    connected(stack, 2)
    assert stack.finish(stack.create("after", QUICK))[0].state == "succeeded"


@pytest.mark.long
def test_wake_ups_lost_in_an_emptied_broker_are_sent_again(stack: Stack, broker: EmbeddedServers) -> None:
    run_ids = [stack.create(f"r{number}", {**QUICK, "seed": number}) for number in range(2)]
    with connect(broker.redis_url) as client:
        stack.wait(lambda: wakeups.waiting(broker.redis_url, "default") == 2, 5, "no wake-ups were sent")
        client.flushall()
    stack.start_worker("only", STEERBOARD_POLL_SECONDS="600")
    assert [run.state for run in stack.finish(*run_ids)] == ["succeeded", "succeeded"]


@pytest.mark.long
def test_a_message_delivered_many_times_runs_nothing_twice(stack: Stack, broker: EmbeddedServers) -> None:
    run_id = stack.create("sft", QUICK)
    with connect(broker.redis_url) as client:
        stack.wait(lambda: wakeups.waiting(broker.redis_url, "default") == 1, 5, "no wake-up was sent")
        message = client.lrange("default", 0, 0)[0]
        client.rpush("default", *[message] * 20)
    stack.start_worker("one")
    stack.start_worker("two")
    (run,) = stack.finish(run_id)
    stack.wait(lambda: wakeups.waiting(broker.redis_url, "default") == 0, 20, "messages were left")
    assert (run.state, run.attempt) == ("succeeded", 1)
    assert stack.timeline(run_id) == ["pending", "queued", "running", "succeeded"]

"""Runs in MLflow, read back over its REST API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from mlflow_servers import PYTHON, FakeMlflow, MlflowReader, real_mlflow
from tracker_world import TrackerWorld

from steerboard.cli.server.launch import bind
from steerboard.trackers.exporting import due
from support.servers.other_server import Answer, OtherServer

needs_mlflow = pytest.mark.skipif(not PYTHON.exists(), reason="there is no .venv-mlflow: run `make setup-mlflow`")
STEPS = range(4)
LOSS = [(0, 1.0), (1, 0.5), (2, 0.33333), (3, 0.25)]
PASSWORD = "of-the-tracking-server"


@pytest.fixture(scope="module")
def real_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with bind("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    with real_mlflow(tmp_path_factory.mktemp("mlflow"), port) as url:
        yield url


@pytest.fixture(params=["in memory", pytest.param("real", marks=[pytest.mark.long, needs_mlflow])])
def mlflow_url(request: pytest.FixtureRequest, other: OtherServer) -> str:
    if request.param == "real":
        return str(request.getfixturevalue("real_url"))
    FakeMlflow(other)
    return other.url.rstrip("/")


def reader(world: TrackerWorld, run: Any) -> MlflowReader:
    link = world.exports(run)[0]["link"]
    url, _, path = link.partition("/#/experiments/")
    return MlflowReader(url, path.rpartition("/")[2])


def test_steps_settings_and_links_are_in_mlflow_once_although_the_exporter_died(
    world: TrackerWorld, mlflow_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tracker("mlflow", url=mlflow_url, experiment="tuning / first")
    run = world.done(*STEPS)
    with monkeypatch.context() as patch:
        patch.setattr(due, "note_written", lambda *_: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            world.export()
    world.export()
    (export,) = world.exports(run)
    assert export["last_error"] is None
    assert export["link"].startswith(f"{mlflow_url}/#/experiments/")
    remote = reader(world, run)
    assert (remote.points("loss"), remote.points("eval_loss")) == (LOSS, [(0, 2.0), (2, 2.0)])
    status, params, tags = remote.run()
    assert (status, params["run"]) == ("FINISHED", "mix")
    assert tags["steerboard.url"].endswith(f"/p/default/runs/{run}")
    assert "/p/default/models/model-" in tags["steerboard.output.model"]


def test_more_steps_than_one_request_takes_arrive(world: TrackerWorld, mlflow_url: str) -> None:
    world.tracker("mlflow", url=mlflow_url)
    run = world.done(*range(1203))
    world.export()
    assert [step for step, _ in reader(world, run).points("loss")] == list(range(1203))


def test_an_outage_is_shown_and_made_up_for_while_the_run_goes_on(world: TrackerWorld, other: OtherServer) -> None:
    server = FakeMlflow(other)
    server.down = True
    world.tracker("mlflow", url=other.url, user="anna", secret=PASSWORD)
    run, claim = world.begin()
    world.log(claim, 0, 1)
    world.export()
    shown = world.shown()
    assert "answered 500 to experiments/get-by-name: the database is away" in shown["last_error"]
    assert shown["next_look_at"]
    assert shown["failing"] == 1
    (export,) = world.exports(run)
    assert "the database is away" in export["last_error"]
    assert export["next_attempt_at"]
    # The run has noticed nothing.
    assert world.state(run) == "running"
    world.log(claim, 2, 3)
    world.succeed(claim)
    server.down = False
    world.export()
    assert reader(world, run).points("loss") == LOSS
    shown = world.shown()
    assert (shown["last_error"], shown["failing"], shown["runs"]) == (None, 0, 1)
    assert other.seen[0].headers["authorization"].startswith("Basic ")


def test_a_server_that_repeats_the_secret_does_not_put_it_into_the_error(
    world: TrackerWorld, other: OtherServer
) -> None:
    server = FakeMlflow(other)
    server.down = True
    other.answer = lambda seen: Answer.json({"message": f"bad token {PASSWORD}"}, 403)
    world.tracker("mlflow", url=other.url, secret=PASSWORD)
    run = world.done(0)
    world.export()
    (export,) = world.exports(run)
    assert "bad token …" in export["last_error"]
    assert PASSWORD not in str(world.shown())
    assert PASSWORD not in (world.settings.home / "logs" / "trackers.log").read_text()


def test_an_address_that_is_no_longer_allowed_is_not_called(
    world: TrackerWorld, other: OtherServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tracker("mlflow", url=other.url)
    run = world.done(0)
    world.settings = world.settings.model_copy(update={"allowed_private": ""})
    world.export()
    assert "address_refused" in world.exports(run)[0]["last_error"]
    assert other.seen == []


def test_a_redirect_to_another_server_is_not_followed(world: TrackerWorld, other: OtherServer) -> None:
    other.answer = lambda _: Answer(302, headers={"Location": "http://127.0.0.1:9/elsewhere"})
    world.tracker("mlflow", url=other.url, secret=PASSWORD)
    run = world.done(0)
    world.export()
    assert "answered 302" in world.exports(run)[0]["last_error"]

"""`/metrics`: figures of the installation out of Postgres, and what this process counts itself."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.app.main import attach, create_app
from steerboard.insights.installation import STAGE_BUCKETS
from steerboard.platform.database import make_engine, make_sessions, transaction
from steerboard.platform.settings import Settings
from steerboard.runs.tables import WorkerRow
from support.servers.app_client import AppClient

DASHBOARD = Path(__file__).parents[2] / "deploy" / "grafana" / "steerboard.json"
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(app: FastAPI, **headers: str) -> Samples:
    with AppClient(app, headers=headers) as client:
        answer = client.get("/metrics")
    assert answer.status_code == 200
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def figure(values: Samples, metric: str, /, **labels: str) -> float:
    return values[metric, tuple(sorted(labels.items()))]


def add_runs(session: Session, project: Project, pool: str, state: str, count: int, waited: float = 0) -> None:
    session.execute(
        text("""
            INSERT INTO runs (id, project_id, name, kind, config, state, reason, pool, priority, attempt, max_attempts,
                reuse, device_seconds, failed_device_seconds, created_by, queued_at)
            SELECT gen_random_uuid(), :project, :pool || :state || n, 'train', '{}', :state, '', :pool, 0, 1, 3, true,
                0, 0, 'test', clock_timestamp() - make_interval(secs => :waited)
            FROM generate_series(1, :count) n
        """),
        {"project": project.id, "pool": pool, "state": state, "count": count, "waited": waited},
    )


@pytest.fixture
def busy(sessions: sessionmaker[Session], project: Project) -> None:
    """Runs in two pools, attempts that ended, a worker with a GPU, one without, and one that fell silent."""
    with transaction(sessions) as session:
        add_runs(session, project, "gpu", "queued", 3, waited=120)
        add_runs(session, project, "gpu", "running", 1)
        add_runs(session, project, "default", "succeeded", 2)
        session.execute(text("UPDATE runs SET not_before = now() + interval '1 hour' WHERE name = 'gpuqueued1'"))
        for seconds, outcome in ((3, "succeeded"), (400, "succeeded"), (0.5, "out_of_memory"), (100_000, "succeeded")):
            session.execute(
                text("""
                    INSERT INTO run_attempts (run_id, attempt, worker, devices, device_seconds, outcome, started_at,
                        ended_at, heartbeat_at)
                    SELECT id, (SELECT count(*) FROM run_attempts), 'w', 1, 0, :outcome, now(),
                        now() + make_interval(secs => :seconds), now()
                    FROM runs WHERE name = 'defaultsucceeded1'
                """),
                {"seconds": seconds, "outcome": outcome},
            )
        gpu = {"id": "0", "name": "H100", "utilization": 0.75, "memory_used": 30 << 30, "memory": 80 << 30}
        rows = [
            WorkerRow(
                name="with", pool="gpu", host="h", pid=1, devices={"ids": ["0"], "gpus": [gpu]}, run_id=project.id
            ),
            WorkerRow(name="without", pool="default", host="h", pid=2, devices={"ids": []}),
            WorkerRow(name="silent", pool="default", host="h", pid=3, devices={"ids": ["0"], "gpus": [gpu]}),
        ]
        session.add_all(rows)
        session.flush()
        session.execute(text("UPDATE workers SET heartbeat_at = now() - interval '1 hour' WHERE name = 'silent'"))


def test_queues_runs_workers_and_gpus_are_those_of_the_database(app: FastAPI, busy: None) -> None:
    values = samples(app)
    assert figure(values, "steerboard_runs", pool="gpu", state="queued") == 3
    assert figure(values, "steerboard_runs", pool="gpu", state="running") == 1
    assert figure(values, "steerboard_runs", pool="default", state="succeeded") == 2
    assert figure(values, "steerboard_queue_due_runs", pool="gpu") == 2
    assert 120 <= figure(values, "steerboard_queue_oldest_seconds", pool="gpu") < 180
    assert figure(values, "steerboard_workers", pool="gpu", state="busy") == 1
    assert figure(values, "steerboard_workers", pool="default", state="idle") == 1
    gpus = {labels: value for (name, labels), value in values.items() if name == "steerboard_gpu_utilization_ratio"}
    assert list(gpus.values()) == [0.75]
    about = {"worker": "with", "pool": "gpu", "device": "0", "name": "H100"}
    assert figure(values, "steerboard_gpu_memory_used_bytes", **about) == 30 << 30
    assert figure(values, "steerboard_gpu_memory_bytes", **about) == 80 << 30
    assert figure(values, "steerboard_database_up") == 1


def test_stage_seconds_survive_a_restart(
    app: FastAPI, busy: None, settings: Settings, sessions: sessionmaker[Session]
) -> None:
    before = samples(app)
    restarted = samples(create_app(settings, sessions=sessions))
    about = {"kind": "train", "outcome": "succeeded"}
    for values in (before, restarted):
        assert figure(values, "steerboard_stage_seconds_count", **about) == 3
        assert figure(values, "steerboard_stage_seconds_sum", **about) == pytest.approx(100_403)
        by_bound = {
            bound: figure(values, "steerboard_stage_seconds_bucket", le=bound, **about)
            for bound in (*(f"{bound:.1f}" for bound in STAGE_BUCKETS), "+Inf")
        }
        assert [by_bound[bound] for bound in ("1.0", "5.0", "300.0", "900.0", "86400.0", "+Inf")] == [0, 1, 1, 2, 2, 3]
        assert figure(values, "steerboard_stage_seconds_count", kind="train", outcome="out_of_memory") == 1


def test_requests_are_counted_by_the_template_of_their_route(app: FastAPI, token: str) -> None:
    route = "/api/v1/projects/{project}/runs/{run}"
    key = {"method": "GET", "route": route, "status": "404"}
    name = "steerboard_http_request_seconds_count"
    before = samples(app).get((name, tuple(sorted(key.items()))), 0)
    with AppClient(app, headers={"Authorization": f"Bearer {token}"}) as client:
        for run in ("one-run", "another-run"):
            assert client.get(f"/api/v1/projects/default/runs/{run}").status_code == 404
        client.get("/api/v1/nothing-like-this")
        client.get("/p/somebody-typed-this")
        client.request("BREW", "/api/v1/projects")
    values = samples(app)
    assert figure(values, name, **key) == before + 2
    labels = json.dumps([key for key in values if key[0] == name])
    for typed in ("one-run", "nothing-like-this", "somebody-typed-this", "BREW"):
        assert typed not in labels
    assert {"unmatched", "dashboard"} <= {dict(key[1])["route"] for key in values if key[0] == name}


def test_a_failing_request_is_counted_and_its_answer_and_its_log_carry_one_id(
    own_app: FastAPI, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    @own_app.get("/api/v1/broken-here")
    def broken() -> None:
        raise RuntimeError("inside")

    with AppClient(own_app, raise_server_exceptions=False) as client:
        assert client.get("/api/v1/broken-here").status_code == 500
        answer = client.get("/api/v1/system/live", headers={"X-Request-ID": "given-by-a-proxy.1"})
        forged = client.get("/api/v1/system/live", headers={"X-Request-ID": 'a" b'})
    key = {"method": "GET", "route": "/api/v1/broken-here", "status": "500"}
    assert figure(samples(own_app), "steerboard_http_request_seconds_count", **key) == 1
    assert answer.headers["x-request-id"] == "given-by-a-proxy.1"
    assert re.fullmatch(r"[0-9a-f]{16}", forged.headers["x-request-id"])


def test_without_the_database_the_figures_say_so(app: FastAPI, settings: Settings) -> None:
    away = settings.model_copy(update={"database_url": "postgresql+psycopg://nobody@127.0.0.1:9/nothing"})
    attach(app, away, make_sessions(make_engine(away.database_url)))
    values = samples(app)
    assert figure(values, "steerboard_database_up") == 0
    assert not [name for name, _ in values if name.startswith("steerboard_runs")]


def test_in_production_the_figures_need_their_own_token(
    app: FastAPI, settings: Settings, sessions: sessionmaker[Session], token: str
) -> None:
    served = settings.model_copy(update={"metrics_token": SecretStr("Vb7-pQ2xLm9zR4tKc8")})
    attach(app, served, sessions)
    with AppClient(app) as client:
        assert client.get("/metrics").status_code == 401
        assert client.get("/metrics", headers={"Authorization": f"Bearer {token}"}).status_code == 401
    assert samples(app, Authorization="Bearer Vb7-pQ2xLm9zR4tKc8")
    app.state.settings = settings.model_copy(update={"environment": "production"})
    with AppClient(app) as client:
        assert client.get("/metrics").status_code == 404


def test_every_figure_of_the_dashboard_is_one_that_is_served(app: FastAPI, busy: None) -> None:
    with AppClient(app) as client:
        client.get("/api/v1/system/live")
    served = {name for name, _ in samples(app)}
    dashboard = json.loads(DASHBOARD.read_text())
    targets = [target for panel in dashboard["panels"] for target in panel.get("targets", [])]
    targets += [variable["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
    expressions = [target["expr"] if "expr" in target else target["query"] for target in targets]
    asked = {name for expression in expressions for name in re.findall(r"steerboard_\w+", expression)}
    assert asked - served == set()
    families = {name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for name in served}
    shown = {name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for name in asked}
    assert families - shown == {"steerboard_info"}, "figures that no panel shows"
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])

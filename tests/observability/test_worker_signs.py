"""What a real worker shows of a run: lines of its log, a span at a collector, and a sign of life for probes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.imports.loading import import_file
from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings
from steerboard.platform.telemetry import traces
from steerboard.runs.state import lifecycle
from steerboard.runs.state.lifecycle import InputRef
from steerboard.runs.tables import Run
from steerboard_contracts.run_config import RUN_CONFIG
from steerboard_workers.cpu_threads import usable_cores
from support.patience import PATIENCE, wait_until
from support.servers.other_server import other_server


def start_mix(session: Session, project: Project, folder: Path) -> Run:
    """A run whose stage needs no torch."""
    rows = folder / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": f"Say {n}", "response": str(n)}) + "\n" for n in range(40)))
    dataset = import_file(session, project, path=rows, name="tiny", kind="instructions").dataset
    config = RUN_CONFIG.validate_python({"run": "mix", "parts": [{}], "size": 10})
    inputs = {"parts.0": InputRef(dataset=dataset.id)}
    return lifecycle.create_run(session, project, name="mixed", config=config, inputs=inputs, created_by="test")


@pytest.mark.long
def test_a_worker_tells_what_it_does_by_the_id_of_the_run(
    settings: Settings, sessions: sessionmaker[Session], project: Project, tmp_path: Path
) -> None:
    with transaction(sessions) as session:
        run_id = start_mix(session, session.get_one(Project, project.id), tmp_path).id
    alive = tmp_path / "alive"
    with other_server() as collector:
        environment = {
            "STEERBOARD_LOG_FORMAT": "json",
            "STEERBOARD_WARM_START": "0",  # for one small run
            "STEERBOARD_ALIVE_FILE": str(alive),
            "STEERBOARD_HEARTBEAT_SECONDS": "0.2",
            "STEERBOARD_POLL_SECONDS": "0.2",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        }
        worker = subprocess.Popen(
            [sys.executable, "-m", "steerboard_workers.worker", "--name", "w1"],
            env={**os.environ, **environment},
            stderr=subprocess.PIPE,
            text=True,
        )
        try:

            def state() -> str:
                with transaction(sessions) as session:
                    return session.get_one(Run, run_id).state

            wait_until(lambda: state() in ("succeeded", "failed"), state, pause=0.05, process=worker)
            assert state() == "succeeded"
            assert time.time() - alive.stat().st_mtime < 30
            worker.send_signal(signal.SIGTERM)
            _, log = worker.communicate(timeout=PATIENCE)
        finally:
            worker.kill()
            worker.wait()
    assert worker.returncode == 0
    lines = [json.loads(line) for line in log.splitlines()]
    about = [line for line in lines if line.get("run_id") == str(run_id)]
    assert [line["message"] for line in about if line["logger"].endswith("execution")] == [
        f"run mixed, attempt 1: begins, CPU threads: {usable_cores()}",
        "run mixed, attempt 1: succeeded",
    ]
    assert {line["attempt"] for line in about} == {1}
    assert {line["worker"] for line in lines} == {"w1"}
    (request,) = [seen for seen in collector.seen if seen.path == "/v1/traces"]
    sent = ExportTraceServiceRequest.FromString(request.body).resource_spans[0]
    resource = {pair.key: pair.value.string_value for pair in sent.resource.attributes}
    assert resource["service.name"] == "steerboard-worker"
    (span,) = sent.scope_spans[0].spans
    assert span.name == "run mix"
    attributes = {pair.key: pair.value.string_value or pair.value.int_value for pair in span.attributes}
    assert attributes["steerboard.run_id"] == str(run_id)
    assert attributes["steerboard.attempt"] == 1
    assert span.end_time_unix_nano > span.start_time_unix_nano


def test_traces_without_their_packages_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    # As an import of what is not installed fails.
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(traces.TelemetryMissing) as refused:
        traces.configure("test")
    assert refused.value.code == "telemetry_missing"
    assert "steerboard[telemetry]" in (refused.value.hint or "")

"""`steerboard api`, `migrate`, `sign-in-link` and `worker` as the processes of a production server."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from sqlalchemy import Engine, text

from steerboard.platform.settings import Settings, get_settings
from support.patience import PATIENCE, wait_until
from support.processes.command_line import Steerboard
from support.servers.other_server import OtherServer, other_server

COMMAND = [sys.executable, "-m", "steerboard.cli.main"]
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PRODUCTION = {
    "STEERBOARD_ENVIRONMENT": "production",
    "STEERBOARD_SECRET_KEY": "k3J9-xQpR7vLz2WmTn8YbUc5HdFg1SaE",
    "STEERBOARD_PUBLIC_URL": "https://board.internal",
    "STEERBOARD_METRICS_TOKEN": "Vb7-pQ2xLm9zR4tKc8",
    "STEERBOARD_LOG_FORMAT": "json",
}


@dataclass
class Api:
    """A running `steerboard api`. `lines`: its log so far."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    url: str = ""

    def wait_until(self, path: str, status: int) -> httpx.Response:
        answers: list[httpx.Response] = []

        def has_answered() -> bool:
            with contextlib.suppress(httpx.TransportError):
                answers.append(httpx.get(self.url + path, timeout=PATIENCE))
                return answers[-1].status_code == status
            return False

        wait_until(has_answered, lambda: "".join(self.lines), pause=0.05, process=self.process)
        return answers[-1]


Start = Callable[..., Api]


@pytest.fixture
def start(settings: Settings) -> Iterator[Start]:
    running: list[Api] = []

    def begin(*options: str, **environment: str) -> Api:
        process = subprocess.Popen(
            [*COMMAND, "api", "--port", "0", *options],
            env={**os.environ, **PRODUCTION, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        api = Api(process)
        running.append(api)
        assert process.stderr is not None
        assert process.stdout is not None
        threading.Thread(target=lambda log: api.lines.extend(log), args=(process.stderr,), daemon=True).start()
        said = process.stdout.readline()
        match = re.search(r"http://\S+", said)
        assert match, said + "".join(api.lines)
        api.url = match.group()
        return api

    yield begin
    for api in running:
        api.process.kill()
        api.process.wait()


@pytest.fixture
def collector() -> Iterator[OtherServer]:
    with other_server() as server:
        yield server


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], env={**os.environ, **PRODUCTION, **environment}, capture_output=True, text=True
    )


@pytest.mark.long
def test_a_server_is_migrated_served_signed_into_and_stopped(
    start: Start, engine: Engine, collector: OtherServer
) -> None:
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    migrating = [subprocess.Popen([*COMMAND, "migrate"], env={**os.environ, **PRODUCTION}) for _ in range(2)]
    # Started before the schema is there, as containers are.
    api = start(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    assert [process.wait(60) for process in migrating] == [0, 0]
    api.wait_until("/api/v1/system/live", 204)
    assert api.wait_until("/api/v1/system/health", 200).json()["status"] == "ok"

    link = run("sign-in-link").stdout.strip()
    assert link.startswith("https://board.internal/sign-in/")
    with httpx.Client(base_url=api.url) as browser:
        answer = browser.post(link.removeprefix("https://board.internal"))
        cookie = answer.headers["set-cookie"]
        assert "Secure" in cookie
        assert "HttpOnly" in cookie
        headers = {"Cookie": cookie.partition(";")[0]}
        traced = {**headers, "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        assert browser.get("/api/v1/session", headers=traced).json()["user"] == "owner"
        shipped = browser.get("/api/v1/projects/default/recipes", headers=headers).json()
        assert "offline-rlhf" in json.dumps(shipped)
        with browser.stream("GET", "/api/v1/projects/default/events", headers=headers, timeout=PATIENCE) as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("retry")
            api.process.send_signal(signal.SIGTERM)
            try:
                assert all(not line.startswith("data") for line in lines)
            except httpx.RemoteProtocolError as error:
                api.process.wait(30)
                raise AssertionError("the stream was cut off:\n" + "".join(api.lines)) from error
    assert api.process.wait(60) == 0
    documents = [json.loads(line) for line in api.lines]
    (about,) = [line for line in documents if line["message"] == "GET /api/v1/session"]
    assert (about["status"], about["logger"]) == (200, "steerboard.requests")
    assert about["request_id"]
    sent = [ExportTraceServiceRequest.FromString(seen.body) for seen in collector.seen if seen.path == "/v1/traces"]
    spans = [span for request in sent for span in request.resource_spans[0].scope_spans[0].spans]
    (span,) = [span for span in spans if span.name == "GET /api/v1/session"]
    attributes = {pair.key: pair.value.string_value for pair in span.attributes}
    assert attributes["http.route"] == "/api/v1/session"
    assert attributes["steerboard.request_id"] == about["request_id"]
    assert span.trace_id.hex() == TRACE


@pytest.mark.long
def test_several_processes_answer_with_one_set_of_figures(start: Start, token: str) -> None:
    api = start("--workers", "2")
    api.wait_until("/api/v1/system/live", 204)
    for _ in range(8):
        # A connection each: the kernel hands them to either process.
        assert (
            httpx.get(
                f"{api.url}/api/v1/projects", timeout=PATIENCE, headers={"Authorization": f"Bearer {token}"}
            ).status_code
            == 200
        )
    assert httpx.get(f"{api.url}/metrics", timeout=PATIENCE).status_code == 401
    given = {"Authorization": f"Bearer {PRODUCTION['STEERBOARD_METRICS_TOKEN']}"}
    figures = httpx.get(f"{api.url}/metrics", timeout=PATIENCE, headers=given).text
    assert 'steerboard_http_request_seconds_count{method="GET",route="/api/v1/projects",status="200"} 8.0' in figures
    api.process.send_signal(signal.SIGTERM)
    assert api.process.wait(20) == 0


REFUSED = {
    "api-without-redis": (["api"], {"STEERBOARD_REDIS_URL": ""}, "missing_setting", "STEERBOARD_REDIS_URL"),
    "up-without-a-store": (["up"], {"STEERBOARD_ARTIFACT_URL": ""}, "missing_setting", "STEERBOARD_ARTIFACT_URL"),
    "migrate-with-a-default-key": (
        ["migrate"],
        {"STEERBOARD_SECRET_KEY": "changeme"},
        "unsafe_setting",
        "STEERBOARD_SECRET_KEY",
    ),
    "migrate-where-nobody-listens": (
        ["migrate"],
        {"STEERBOARD_DATABASE_URL": "postgresql://board:Xq81-vv0Pz@127.0.0.1:9/board"},
        "database_unreachable",
        "STEERBOARD_DATABASE_URL",
    ),
    "sign-in-of-nobody": (["sign-in-link", "--user", "nobody-here"], {}, "not_found", "nobody-here"),
}


@pytest.mark.parametrize(("arguments", "changes", "code", "named"), REFUSED.values(), ids=list(REFUSED))
def test_a_command_that_cannot_start_says_why(
    arguments: list[str],
    changes: dict[str, str],
    code: str,
    named: str,
    settings: Settings,
    steerboard: Steerboard,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {**PRODUCTION, "STEERBOARD_START_SECONDS": "0.2", **changes}.items():
        monkeypatch.setenv(name, value)
    get_settings.cache_clear()
    done = steerboard("", "", *arguments)
    assert done.returncode == 1
    assert f"[{code}]" in done.stderr
    assert named in done.stderr


def test_without_the_schema_nothing_is_touched_and_the_message_says_who_makes_it(
    settings: Settings, engine: Engine, steerboard: Steerboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    monkeypatch.setenv("STEERBOARD_START_SECONDS", "0.2")
    get_settings.cache_clear()
    done = steerboard("", "", "sign-in-link")
    assert done.returncode == 1
    assert "[schema_not_ready]" in done.stderr
    assert "steerboard migrate" in done.stderr


@pytest.mark.long
def test_a_worker_that_cannot_start_says_why_and_shows_no_traceback(settings: Settings) -> None:
    done = run("worker", "--pool", "interactive", STEERBOARD_DATABASE_URL="")
    assert done.returncode == 1
    assert "[missing_setting]" in done.stderr
    assert "STEERBOARD_DATABASE_URL" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    "arguments", [["up", "--port"], ["api", "--port", "0"], ["worker"]], ids=lambda given: given[0]
)
def test_every_start_sweeps_what_killed_processes_left_behind(
    arguments: list[str], settings: Settings, engine: Engine, tmp_path: Path
) -> None:
    """A start that fails sweeps, too: `up` fails for its port, the others for the schema."""
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    temporary = tmp_path / "temporary"
    left = temporary / "steerboard-tmp-model-of-the-dead"
    left.mkdir(parents=True)
    (left / "weights").write_bytes(b"x")
    os.utime(left, (time.time() - 3600,) * 2)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = [str(taken.getsockname()[1])] if arguments[0] == "up" else []
        environment = {"TMPDIR": str(temporary), "STEERBOARD_START_SECONDS": "0.2"}
        done = run(*arguments, *port, **environment)
    assert ("[port_in_use]" if port else "[schema_not_ready]") in done.stderr
    assert done.returncode == 1
    assert not left.exists()

"""A link to sign in, or to a report, works for anyone who reads it: its code is in no log line and no span."""

from __future__ import annotations

import logging

import pytest
from fastapi import FastAPI
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sqlalchemy.exc import OperationalError

from steerboard.accounts import service
from steerboard.platform.telemetry import traces
from steerboard.platform.telemetry.secret_paths import without_code
from support.servers.app_client import AppClient

CODE = "zebra-code"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(traces, "_provider", provider)
    return kept


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """The lines of our own loggers: the test's client logs what it asks for."""
    caplog.set_level(logging.WARNING)
    caplog.set_level(logging.INFO, "steerboard")
    return caplog


@pytest.mark.parametrize("page", ["/shared/", "/sign-in/"])
def test_lines_and_spans_have_the_template_of_a_link_in_place_of_its_code(
    app: FastAPI, lines: pytest.LogCaptureFixture, spans: InMemorySpanExporter, page: str
) -> None:
    with AppClient(app) as anybody:
        # Also as people mistype an address, with a code that may be right.
        for path in (page + CODE, f"{page}{CODE}/", f"{page}/{CODE}", page.upper() + CODE):
            anybody.get(path, follow_redirects=False)
        anybody.post(page + CODE)
    assert f"GET {page}{{code}}" in lines.messages
    assert f"POST {page}{{code}}" in lines.messages
    finished = spans.get_finished_spans()
    assert finished[0].attributes is not None
    assert finished[0].attributes["url.path"] == f"{page}{{code}}"
    said = lines.text + "".join(span.to_json() for span in finished)
    assert CODE not in said
    assert len(finished) == len([line for line in lines.messages if line.startswith(("GET", "POST"))]) == 5


@pytest.mark.parametrize("error", [OperationalError("SELECT 1", {}, OSError("away")), RuntimeError("unexpected")])
def test_a_failure_is_logged_without_the_code(
    app: FastAPI, lines: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> bool:
        raise error

    monkeypatch.setattr(service, "is_open", fail)
    with AppClient(app, raise_server_exceptions=False) as anybody:
        assert anybody.get(f"/sign-in/{CODE}").status_code >= 500
    assert any(record.levelno >= logging.WARNING and "/sign-in/{code}" in record.message for record in lines.records)
    assert CODE not in lines.text


@pytest.mark.parametrize("path", ["/", "/sign-in", "/p/shared/runs", "/api/v1/projects/shared/runs", "/sign-in-help/x"])
def test_other_paths_stay_as_they_are(path: str) -> None:
    assert without_code(path) == path

"""OpenTelemetry traces over OTLP/HTTP, when OTEL_EXPORTER_OTLP_ENDPOINT (or _TRACES_ENDPOINT) is set.

The SDK is the extra `telemetry` and is imported only then; OTEL_* variables work as it documents.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from steerboard import __version__
from steerboard_contracts.errors import SteerboardError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_WHERE = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
Attribute = str | int | float | bool


class TelemetryMissing(SteerboardError):
    """Traces are wanted, and the packages that send them are not installed."""

    code = "telemetry_missing"
    title = "The tracing packages are missing"


class Span(Protocol):
    """What callers may do with a span of theirs."""

    def set_attribute(self, key: str, value: Attribute) -> None: ...

    def update_name(self, name: str) -> None: ...


class _NoSpan:
    def set_attribute(self, key: str, value: Attribute) -> None: ...

    def update_name(self, name: str) -> None: ...


_provider: TracerProvider | None = None


def configure(service: str) -> None:
    """Called once in a process. Without an endpoint nothing is imported. Raises `TelemetryMissing`."""
    global _provider
    if _provider is not None or not any(os.environ.get(name) for name in _WHERE):
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise TelemetryMissing(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, and the extra `telemetry` is not installed",
            hint="pip install 'steerboard[telemetry]', or unset the variable.",
        ) from None
    name = os.environ.get("OTEL_SERVICE_NAME", service)
    provider = TracerProvider(resource=Resource.create({"service.name": name, "service.version": __version__}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    _provider = provider


@contextmanager
def span(name: str, attributes: Mapping[str, Attribute], *, headers: Mapping[str, str] | None = None) -> Iterator[Span]:
    """A span of what happens below; an error that leaves it is recorded. `headers` are those of a request that may
    carry the caller's `traceparent`. Does nothing where traces go nowhere."""
    if _provider is None:
        yield _NoSpan()
        return
    from opentelemetry.propagate import extract
    from opentelemetry.trace import SpanKind

    kind = SpanKind.INTERNAL if headers is None else SpanKind.SERVER
    context = extract(headers) if headers is not None else None
    tracer = _provider.get_tracer("steerboard", __version__)
    with tracer.start_as_current_span(name, context=context, kind=kind, attributes=dict(attributes)) as current:
        yield current

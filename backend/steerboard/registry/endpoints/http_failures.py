"""How an HTTP server failed to answer, as errors: their texts, whether asking again helps, and what may be billed."""

from __future__ import annotations

from typing import Any

import httpx

from steerboard.platform.security.masking import masked
from steerboard.registry.endpoints.failures import CHECK_ITS_LOG, EndpointRefused, EndpointUnreachable
from steerboard.registry.endpoints.rate_limit import retry_after
from steerboard_files.texts import storable

_SHOWN = 300
# Not implemented, unavailable, overloaded: sent before the work, like every 4xx but 408. Any other 5xx may come from a
# proxy or a server that gave up when the model had written its answer, and was paid for it.
_BEFORE_THE_WORK = (501, 503, 529)
_HINTS = {
    401: "Check the endpoint's key.",
    403: "Check what the endpoint's key may do.",
    404: "Check the base URL, which usually ends in /v1, and the model's name.",
    429: "Wait a little, then try again.",
}


class HttpFailures:
    """The failures of one endpoint. Some servers repeat the key in their errors: it is masked."""

    def __init__(self, base_url: str, key: str | None, total_seconds: float) -> None:
        self._base_url, self._key, self._seconds = base_url, key, total_seconds

    def refused(self, response: httpx.Response, document: Any) -> EndpointRefused:
        """An answer other than 2xx, with this document."""
        status, message = response.status_code, self.message(document)
        hint = "Redirects are not followed: give the final URL." if response.is_redirect else _HINTS.get(status)
        return EndpointRefused(
            f"the endpoint answered {status}" + (f": {message}" if message else ""),
            f"http_{status}",
            hint=CHECK_ITS_LOG if status >= 500 else hint,
            retryable=status in (408, 409, 425, 429) or status >= 500,
            pause=retry_after(response.headers),
            perhaps_billed=status == 408 or (status >= 500 and status not in _BEFORE_THE_WORK),
        )

    def stopped_early(self, document: Any) -> EndpointRefused:
        """An error in the middle of a stream, which has no status of its own."""
        detail = f"the endpoint stopped early: {self.message(document)}"
        return EndpointRefused(detail, "stopped_early", hint=CHECK_ITS_LOG, retryable=True, perhaps_billed=True)

    def lost(self, error: BaseException) -> EndpointUnreachable:
        """No answer, for the log of a run, which names the endpoint."""
        if isinstance(error, httpx.TimeoutException):
            return _unreachable(error, f"no answer within {self._seconds:g} s")
        return _unreachable(error, self._text(error)[:_SHOWN])

    def lost_live(self, error: BaseException) -> EndpointUnreachable:
        """No answer, or none to its end, for someone who is waiting for it."""
        if isinstance(error, httpx.TimeoutException):
            what = "took too long"
        elif isinstance(error, httpx.RemoteProtocolError | httpx.ReadError):
            what = "the connection ended before the answer did"
        else:
            what = self._text(error)
        return _unreachable(error, f"{self._base_url}: {what}")

    def message(self, document: Any) -> str:
        """The message in the document of a failure, shortened."""
        for _ in range(3):
            if not isinstance(document, dict):
                break
            document = next((document[name] for name in ("error", "message", "detail") if document.get(name)), "")
        text = " ".join(self._clean(document).split()) if isinstance(document, str) else ""
        return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."

    def _text(self, error: BaseException) -> str:
        return self._clean(str(error)) or type(error).__name__

    def _clean(self, text: str) -> str:
        """The text without the key, and without what Postgres cannot hold."""
        return storable(masked(text, self._key))


def _unreachable(error: BaseException, detail: str) -> EndpointUnreachable:
    return EndpointUnreachable(
        detail,
        "timeout" if isinstance(error, httpx.TimeoutException) else "broken_connection",
        hint="Check the base URL and that the server runs.",
        retryable=True,
        perhaps_billed=not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout),
    )

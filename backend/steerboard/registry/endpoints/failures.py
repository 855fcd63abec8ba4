"""What an endpoint does in place of an answer, whichever provider asks it."""

from __future__ import annotations

from steerboard_contracts.errors import SteerboardError

CHECK_ITS_LOG = "Check that the server is still running; its log has the cause."
CHECK_ITS_URL = "The base URL of an OpenAI-compatible server usually ends in /v1."


class ChatFailed(SteerboardError):
    """Base of the three below, none of which holds the key.

    `reason`: a stable word by which failures are counted: `http_429`, `timeout`, `broken_connection`, `nonsense`,
    `no_room`, `stopped_early`, `address_refused`. `pause`: seconds that the endpoint asked to be left alone for.
    `perhaps_billed`: the request was sent and not refused before the work, so an answer may have been made.
    """

    status = 502

    def __init__(
        self,
        detail: str,
        reason: str,
        *,
        hint: str | None = None,
        retryable: bool = False,
        pause: float | None = None,
        perhaps_billed: bool = False,
    ) -> None:
        super().__init__(detail, hint=hint)
        self.reason, self.retryable, self.pause, self.perhaps_billed = reason, retryable, pause, perhaps_billed


class EndpointRefused(ChatFailed):
    """The endpoint answered with a failure of its own, or its address may not be called."""

    code = "endpoint_refused"
    title = "The endpoint refused the request"


class EndpointUnreachable(ChatFailed):
    """No connection, no answer in time, or the connection broke."""

    code = "endpoint_unreachable"
    title = "The endpoint does not answer"


class EndpointNonsense(ChatFailed):
    """Something answers there, but not as a server of its kind would."""

    code = "endpoint_nonsense"
    title = "The endpoint's answer cannot be understood"

    def __init__(
        self, detail: str, reason: str = "nonsense", *, hint: str | None = None, retryable: bool = True
    ) -> None:
        super().__init__(detail, reason, hint=hint, retryable=retryable, perhaps_billed=True)

"""What a server sends, within bounds."""

from __future__ import annotations

from collections.abc import Iterator

import httpx

from steerboard.registry.endpoints.failures import EndpointNonsense

_LONGEST_FAILURE = 64 << 10


class BoundedBody(httpx.SyncByteStream):
    """The body of one response as it comes; nothing is unpacked. After `left` bytes it is an `EndpointNonsense` with
    the text `too_long`; a failure's body is cut instead. `ended`: it was read to its end."""

    def __init__(self, left: int, too_long: str, hint: str | None = None) -> None:
        self.left = left
        self.ended = False
        self._too_long, self._hint = too_long, hint

    def take(self, response: httpx.Response) -> None:
        """A hook of the client, called before anyone reads."""
        assert isinstance(response.stream, httpx.SyncByteStream)
        self._inner, response.stream = response.stream, self
        self._cut = not response.is_success
        self.left = _LONGEST_FAILURE if self._cut else self.left
        response.headers.pop("content-encoding", None)

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._inner:
            self.left -= len(chunk)
            if self.left < 0 and self._cut:
                yield chunk[: self.left]
                return
            if self.left < 0:
                raise EndpointNonsense(self._too_long, hint=self._hint)
            yield chunk
        self.ended = True

    def close(self) -> None:
        self._inner.close()

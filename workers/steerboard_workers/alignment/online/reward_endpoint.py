"""A server that is asked for rewards over HTTP, behind the guard of all URLs that users give."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from typing import Any

import httpx

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.network.addresses import AllowList
from steerboard_contracts.network.safe_http import check_url, open_client, read_start, refuse_private
from steerboard_contracts.online.reward_rules import HttpReward

# Between two tries, doubled each time.
WAIT_SECONDS = 0.5
# The bytes of a reply: more than any list of so few numbers takes.
LIMIT = 1 << 20
_BUSY = 429


class RewardEndpointFailed(SteerboardError):
    """The server gives no rewards."""

    code = "reward_endpoint_failed"
    status = 502
    title = "The reward endpoint failed"


class RewardEndpoint:
    def __init__(self, rule: HttpReward, allowed_private: str) -> None:
        """Raises `BadUrl`, `AddressRefused`."""
        self._rule = rule
        self._allowed = AllowList(allowed_private)
        self._url = check_url(rule.url)
        refuse_private(self._allowed, self._url)

    def score(
        self, prompts: Sequence[Any], answers: Sequence[str], references: Sequence[str | None], most_lost: int
    ) -> list[float]:
        """Raises `RewardEndpointFailed`, `AddressRefused`."""
        rewards: list[float] = []
        for at in range(0, len(answers), self._rule.batch):
            part = slice(at, at + self._rule.batch)
            size = len(answers[part])
            if sum(map(math.isnan, rewards)) > most_lost:
                rewards += [math.nan] * size
                continue
            body = {"prompts": prompts[part], "answers": answers[part], "references": references[part]}
            rewards += self._asked(body, size)
        return rewards

    def _asked(self, body: dict[str, Any], size: int) -> list[float]:
        problem: str | None = None
        for number in range(self._rule.retries + 1):
            if number:
                time.sleep(WAIT_SECONDS * 2 ** (number - 1))
            try:
                status, content = self._post(body)
            except httpx.TimeoutException:
                problem = None
                continue
            except httpx.HTTPError as error:
                problem = str(error) or type(error).__name__
                continue
            if status == httpx.codes.OK:
                return self._read(content, size)
            problem = f"it answered with status {status}"
            if status != _BUSY and status < httpx.codes.INTERNAL_SERVER_ERROR:
                break
        if problem is None:
            return [math.nan] * size
        raise self._failed(problem)

    def _post(self, body: dict[str, Any]) -> tuple[int, bytes]:
        seconds = self._rule.seconds
        with (
            open_client(self._allowed, timeout_seconds=seconds, total_seconds=seconds) as client,
            client.stream("POST", self._url, json=body) as response,
        ):
            return response.status_code, read_start(response, LIMIT)[0]

    def _read(self, content: bytes, size: int) -> list[float]:
        try:
            rewards = [_number(reward) for reward in _list(json.loads(content)["rewards"])]
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            raise self._failed('its answer is not {"rewards": [number or null, ...]}') from None
        if len(rewards) != size:
            raise self._failed(f"it gave {len(rewards)} rewards for {size} answers")
        return [reward if math.isfinite(reward) else math.nan for reward in rewards]

    def _failed(self, problem: str) -> RewardEndpointFailed:
        return RewardEndpointFailed(f"{self._url}: {problem}", hint="Check the server, then resume the run.")


def _list(value: Any) -> list[Any]:
    """Raises TypeError: text and objects can be gone through, too."""
    if not isinstance(value, list):
        raise TypeError(type(value).__name__)
    return value


def _number(value: Any) -> float:
    """Raises TypeError, and OverflowError for a whole number that is too large."""
    if value is None:
        return math.nan
    if not isinstance(value, int | float):
        raise TypeError(type(value).__name__)
    return float(value)

"""The socket at which a stage asks its run's judges: a stage knows neither the database nor the endpoint's key.

Lines of JSON, one reply to each request. A request: {"place", "groups", "prompts", "answers", "references"}, all lists
by answer; answers of one number in `groups` are to one prompt. A reply: {"rewards": [number or null], "requests",
"cached", "cost"}, or {"error": {"code", "detail", "hint", "retryable"}}.
"""

from __future__ import annotations

import logging
import math
import shutil
import socketserver
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from steerboard.evaluation.reward_judges.asking import RewardJudges
from steerboard.evaluation.reward_judges.rewards import GroupToJudge
from steerboard_contracts.errors import SteerboardError

log = logging.getLogger(__name__)


@contextmanager
def serving(judges: RewardJudges) -> Iterator[str]:
    """The path of a socket that only this user can open, until the context ends."""
    # Not in the run's folder: the path of a socket has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="steerboard-judges-"))
    server = _Server(str(folder / "socket"), judges)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield str(folder / "socket")
    finally:
        judges.close()
        server.shutdown()
        server.server_close()
        thread.join()
        shutil.rmtree(folder, ignore_errors=True)


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, path: str, judges: RewardJudges) -> None:
        super().__init__(path, _Connection)
        self.judges = judges
        self.one_at_a_time = threading.Lock()


class _Connection(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        for line in self.rfile:
            with self.server.one_at_a_time:
                reply = _reply(self.server.judges, orjson.loads(line))
            try:
                self.wfile.write(orjson.dumps(reply) + b"\n")
            except OSError:
                return  # the stage has gone


def _reply(judges: RewardJudges, request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        judged = judges.judge(request["place"], _groups(request))
    except SteerboardError as error:
        return _error(error.code, error.detail, error.hint, error.retryable)
    except Exception as error:
        # Never its text, which may hold anything.
        log.exception("asking the judges of a run hit an unexpected error")
        return _error("judge_failed", f"Asking the judge failed: {type(error).__name__}.", None, retryable=True)
    rewards = [None if math.isnan(reward) else reward for reward in judged.rewards]
    return {**asdict(judged), "rewards": rewards}


def _error(code: str, detail: str, hint: str | None, retryable: bool) -> dict[str, Any]:
    return {"error": {"code": code, "detail": detail, "hint": hint, "retryable": retryable}}


def _groups(request: Mapping[str, Any]) -> list[GroupToJudge]:
    places: dict[int, list[int]] = {}
    for place, group in enumerate(request["groups"]):
        places.setdefault(group, []).append(place)
    prompts, answers, references = request["prompts"], request["answers"], request["references"]
    return [
        GroupToJudge(_messages(prompts[of[0]]), references[of[0]], [answers[place] for place in of], of)
        for of in places.values()
    ]


def _messages(prompt: str | Sequence[Mapping[str, str]]) -> Sequence[Mapping[str, str]]:
    return [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt

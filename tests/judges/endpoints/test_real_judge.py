"""A real language model behind transformers' own server, and between them and us everything that goes wrong.

Two kills with -9 in the middle: first of the judge's process, then of its worker.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faulty_proxy import FaultyProxy, faulty_proxy
from judge_world import SECRET, JudgeWorld
from served_model import served, wait_until_served

from steerboard.evaluation.judge_tables import JudgeAnswer, Verdict
from steerboard.evaluation.judges.verdict_parser import rating
from steerboard.platform.settings import get_settings
from support.patience import PATIENCE, wait_until

PROMPTS, ENTRANTS = 8, ("anna", "bert", "carl")
REQUESTS = PROMPTS * len(ENTRANTS)
# The model's answer takes a tenth of a second, on a busy machine more.
TIME_LIMIT = 6.0
LEASE_SECONDS = 4
PROCESS = b"steerboard.evaluation.judges.process"


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[FaultyProxy]:
    folder = tmp_path / "model"
    folder.mkdir()
    with served(folder) as url, faulty_proxy(url, seed=4, time_limit=TIME_LIMIT) as made:
        made.wait = lambda: wait_until_served(url, folder)  # type: ignore[attr-defined]
        made.model = str(folder)  # type: ignore[attr-defined]
        yield made


class Workers:
    """Worker processes, started and killed."""

    def __init__(self, world: JudgeWorld, folder: Path) -> None:
        settings = world.settings
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._environment = {
            **os.environ,
            "STEERBOARD_HOME": str(settings.home),
            "STEERBOARD_WARM_START": "0",  # judges run no stage
            "STEERBOARD_ALLOWED_PRIVATE": settings.allowed_private,
            "STEERBOARD_LEASE_SECONDS": str(LEASE_SECONDS),
            "STEERBOARD_HEARTBEAT_SECONDS": "0.5",
            "STEERBOARD_SWEEP_SECONDS": "0.5",
            "STEERBOARD_POLL_SECONDS": "0.3",
            "STEERBOARD_RETRY_SECONDS": "0.1",
        }

    def start(self, name: str) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            command = [sys.executable, "-m", "steerboard_workers.worker", "--name", name]
            self._processes[name] = subprocess.Popen(
                command, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self, name: str) -> None:
        process = self._processes.pop(name)
        process.kill()
        process.wait(timeout=PATIENCE)

    def kill_all(self) -> None:
        for name in list(self._processes):
            self.kill(name)

    def logs(self) -> str:
        return "\n".join(path.read_text()[-2000:] for path in sorted(self._folder.glob("*.log")))


@pytest.fixture
def workers(world: JudgeWorld, tmp_path: Path) -> Iterator[Workers]:
    made = Workers(world, tmp_path)
    yield made
    made.kill_all()


def judge_processes(run_id: str) -> list[int]:
    """The processes of the run, without guardians."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes().split(b"\0")
                guards = any(part.endswith(b"guardian.py") for part in command)
                if PROCESS in command and run_id.encode() in command and not guards:
                    pids.append(int(entry.name))
    return pids


@pytest.mark.long
def test_a_judge_survives_a_bad_endpoint_and_two_kills_and_pays_for_nothing_twice(
    world: JudgeWorld, proxy: Any, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(condition: Callable[[], bool], what: str, pause: float = 0.05) -> None:
        def known() -> str:
            return f"{what}: {world.look('real')}\n{proxy.complete} {dict(proxy.faults)}\n{workers.logs()}"

        wait_until(condition, known, pause=pause)

    def all_is_noted() -> bool:
        """Whatever the endpoint sent before it stood still has reached the database."""
        judge = world.look("real")
        return judge["requests"] == proxy.complete and judge["failures"] == dict(proxy.faults)

    # Long leases that are lost on a busy machine are not what this is about.
    monkeypatch.setenv("STEERBOARD_MAX_ATTEMPTS", "10")
    get_settings.cache_clear()
    workers.start("first")
    world.evaluation(entrants=ENTRANTS, prompts=PROMPTS)
    body = {"name": "real", "base_url": f"{proxy.url}/v1", "model": proxy.model, "api_key": SECRET}
    assert world.client.post("/api/v1/projects/default/endpoints", json=body).status_code == 201
    proxy.wait()
    settings = {"concurrency": 6, "attempts": 15, "timeout_seconds": TIME_LIMIT, "temperature": 1.0, "max_tokens": 20}
    asked = {"style": "single", "name": "real", "endpoint": "real", "settings": settings}
    made = world.client.post("/api/v1/projects/default/evaluations/e/judges", json=asked)
    assert made.status_code == 201, made.text
    run_id = made.json()["run"]["id"]

    # The first kill: of the judge's process, with requests under way.
    wait(lambda: proxy.complete >= 5, "nothing is answered")
    proxy.hold()
    wait(lambda: all_is_noted() and proxy.fresh(), "the endpoint's last words were not noted", 0.3)
    answered = proxy.complete
    [victim] = judge_processes(run_id)
    os.kill(victim, signal.SIGKILL)
    wait(lambda: victim not in judge_processes(run_id), "the judge's process lives")
    proxy.drop_and_go_on()
    workers.start("second")

    # The second: of its worker, and with it whatever it guards. The other worker takes over.
    wait(lambda: proxy.complete >= answered + 5, "it does not continue after its process was killed")
    proxy.hold()
    wait(lambda: all_is_noted() and proxy.fresh(), "the endpoint's last words were not noted", 0.3)
    assert REQUESTS > proxy.complete >= answered + 5
    workers.kill(world.worker_of(run_id))
    wait(lambda: not judge_processes(run_id), "a judge's process outlives its worker")
    proxy.stalling = True
    proxy.drop_and_go_on()

    wait(lambda: world.look("real")["state"] in ("succeeded", "failed"), "it does not end", 0.3)
    judge = world.look("real")
    assert judge["state"] == "succeeded", judge["run"]
    assert world.run(run_id).attempt >= 3

    # Nothing was paid for twice, and everything once.
    assert [len(texts) for texts in proxy.answered.values()] == [1] * REQUESTS
    assert (judge["requests"], judge["cached"], judge["verdicts"]) == (REQUESTS, 0, REQUESTS)
    assert world.count(JudgeAnswer) == world.count(Verdict) == REQUESTS

    # Every failure was counted, of every kind that there was.
    assert judge["failures"] == dict(proxy.faults)
    assert set(proxy.faults) == {"timeout", "http_500", "http_429", "broken_connection", "nonsense"}
    assert judge["errors"] == 0

    # Verdicts match the answers.
    said = dict(texts[0] for texts in proxy.answered.values())
    for verdict in world.verdicts("real"):
        [text] = [text for prompt, text in said.items() if f"{verdict['a']} says {verdict['position']}.1" in prompt]
        assert (verdict["raw"], verdict["value"]) == (text, rating(text))
    silent = sum(rating(text) is None for text in said.values())
    assert silent >= proxy.nonsense > 0
    assert (judge["unparsed"], judge["ok"]) == (silent, REQUESTS - silent)
    assert judge["valid"] is (silent / REQUESTS <= 0.05)
    assert len({verdict["value"] for verdict in world.verdicts("real", status="ok")}) > 2
    assert judge["prompt_tokens"] > 0
    assert judge["completion_tokens"] >= REQUESTS
    assert SECRET not in workers.logs() + "".join(world.log_of(run_id))

"""`steerboard demo` from nothing to answers that are ranked, and another recipe on its models. Its answers have a known
quality."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.patience import wait_until

STEERBOARD = str(Path(sys.executable).with_name("steerboard"))
# The demo's rates, in recipes/demo.yaml: with its data and its base model, SFT and both reward models are reused.
RAFT = (
    *("base=demo-1.base", "instructions=demo-instructions", "preferences=demo-preferences", "prompts=demo-prompts"),
    *("sft.lr=1.5e-3", "sft.batch=16", "sft.epochs=3"),
    *("reward.lr=6.0e-4", "reward.batch=8", "reward.epochs=2.5"),
    *("answers.decoding.max_new_tokens=96", "answers.batch_size=128", "answers.limit=250"),
    *("raft.lr=1.0e-3", "raft.batch=16", "raft.epochs=2"),
    *("report.quality=synthetic", "report.prompts=80", "report.batch_size=128"),
    "report.decoding.max_new_tokens=96",
)


@dataclass
class Demo:
    """One that stays up. `browser`: signed in, in its project; `page`: where its answers are ranked."""

    browser: httpx.Client
    page: str

    def get(self, path: str) -> Any:
        answer = self.browser.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The second one in its home: it reuses every stage of the first, which ended with its report."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STEERBOARD_")}
    environment |= {"STEERBOARD_HOME": str(tmp_path_factory.mktemp("demo") / "home")}
    command = [STEERBOARD, "demo", "--port", "0"]
    done = subprocess.run([*command, "--exit"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for method in ("Decision Transformer", "DPO", "KTO", "sft_best_of_8"):
        assert method in done.stdout
    assert "/sign-in/" not in done.stdout
    assert "/rank/" not in done.stdout
    assert "steerboard evaluations rank demo-1.report" in done.stdout
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as staying:
        assert staying.stdout is not None
        printed = "".join(iter(staying.stdout.readline, "Steerboard stays up; stop it with Ctrl-C.\n"))
        (link,) = re.findall(r"Rank the answers blind, signed in once:  (\S+)", printed)
        with signed_in(link) as demo:
            yield demo
        staying.send_signal(signal.SIGTERM)
    assert staying.returncode == 0


@contextmanager
def signed_in(link: str) -> Iterator[Demo]:
    url = link[: link.index("/sign-in/")]
    with httpx.Client(base_url=f"{url}/api/v1/projects/default/", timeout=60) as browser:
        page = browser.post(link).headers["location"]
        assert "<!doctype html>" in browser.get(url + page).text.lower()
        browser.headers["X-CSRF-Token"] = browser.get(f"{url}/api/v1/session").json()["csrf_token"]
        yield Demo(browser, page)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_demo_ends_with_an_address_to_rank_at_unless_its_server_has_stopped(demo: Demo) -> None:
    campaign = demo.page.removeprefix("/p/default/rank/")
    (task,) = demo.browser.post(f"rankings/{campaign}/next", json={"ahead": 1}).json()["items"]
    assert len(task["answers"]) == 7
    body = {"ranks": [1, 2, 3, 4, 5, 6, 7], "seconds": 9, "submission": task["id"]}
    assert demo.browser.post(f"rankings/tasks/{task['id']}/submit", json=body).json()["done"] == 1


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_raft_answers_better_than_sft_by_reward_and_by_known_quality(demo: Demo) -> None:
    started = demo.browser.post("pipelines", json={"recipe": "raft", "set": list(RAFT)})
    assert started.status_code == 201, started.text
    name = started.json()["name"]
    ends = ("succeeded", "failed", "cancelled")
    wait_until(lambda: demo.get(f"pipelines/{name}")["state"] in ends, seconds=1500, pause=1)
    assert demo.get(f"pipelines/{name}")["state"] == "succeeded"
    for stage in ("sft", "reward", "independent"):
        assert demo.get(f"runs/{name}.{stage}")["reused_from_id"] is not None
    selection = demo.get(f"runs/{name}.best/selection")
    curve = [point["rewards"][0] for point in selection["curve"]]
    assert curve == sorted(curve)
    assert selection["rewards"][0]["best"]["low"] > selection["rewards"][0]["mean"]["high"]
    rows = {row["name"]: row for row in demo.get(f"pipelines/{name}/report")["methods"]}
    print(
        {
            name: {key: row[key] for key in ("reward_mean", "quality_mean", "device_seconds")}
            for name, row in rows.items()
        }
    )
    sft, raft = rows["sft"], rows["raft"]
    assert raft["method"] == "raft"
    assert raft["reward_low"] > sft["reward_mean"]
    assert raft["quality_mean"] > sft["quality_mean"]
    assert raft["independent_win_rate_vs_baseline"] > 0.5
    # Its own training, and the generation, scoring and selection behind its data.
    stages = ("answers", "scored", "best", "raft")
    parts = [demo.get(f"runs/{name}.{stage}")["device_seconds"] for stage in stages]
    assert raft["device_seconds"] == pytest.approx(sum(parts), rel=0.01)
    made = {(node["type"], node["name"]) for node in demo.get(f"models/{name}.raft/lineage")["nodes"]}
    wanted = {("dataset", f"{name}.{stage}") for stage in ("answers", "scored", "best")}
    assert wanted | {("run", "best"), ("model", "demo-1.reward")} <= made

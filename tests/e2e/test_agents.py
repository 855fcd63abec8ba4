"""An agent trains and evaluates on a real server with a worker: check, start, wait, look, evaluate, read the report."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import anyio
from dashboard_world import World
from mcp import Client

from steerboard.mcp.boards import OwnBoards
from steerboard.mcp.server import make_server
from support.patience import PATIENCE

TINY = {"source": "random:tiny-llama", "vocabulary": 400, "hidden": 32, "layers": 1, "heads": 2}


async def session(url: str, token: str) -> None:
    async with Client(make_server(OwnBoards(lambda: (url, token), "default"))) as client:

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result.content
            assert result.structured_content is not None
            return result.structured_content

        async def ended(run: str) -> None:
            with anyio.fail_after(PATIENCE):
                while not (seen := await call("wait", what="runs", name=run, seconds=20))["ended"]:
                    pass
            assert seen["state"] == "succeeded", seen

        base = await call("start_run", kind="base", inputs={"data.0": "things"}, settings=TINY, name="agent-base")
        await ended(base["started"]["id"])
        (model,) = (await call("inspect", what="runs", name=base["started"]["id"], fields=["outputs"]))["outputs"]
        work = {"kind": "sft", "inputs": {"model": model["id"], "data": "things"}}
        settings = {"max_steps": 3, "batch": 4, "epochs": 10}
        check = await call("check_run", **work, settings=settings)
        assert check["ok"], check
        assert check["check"]["rows"]["state"] == "succeeded"
        assert check["check"]["rows"]["checked"] > 0
        assert check["check"]["pool"]["workers"] == 1
        trained = await call("start_run", **work, settings=settings, name="agent-sft")
        run = trained["started"]["id"]
        await ended(run)
        assert (await call("read_metrics", run=run))["metrics"]["loss"]["steps"] >= 1
        assert "<data-" in json.dumps((await call("read_logs", run=run, lines=5))["lines"])
        (policy,) = (await call("inspect", what="runs", name=run, fields=["outputs"]))["outputs"]
        entrants = [{"model": model["id"], "name": "base"}, {"model": policy["id"], "name": "sft"}]
        await call("evaluate", name="by-agent", prompts="things", entrants=entrants)
        with anyio.fail_after(PATIENCE):
            while (await call("inspect", what="evaluations", name="by-agent"))["state"] == "answering":
                await anyio.sleep(0.5)
        answers = await call("read_answers", evaluation="by-agent", limit=2)
        assert [one["entrant"] for one in answers["items"][0]["answers"]] == ["base", "sft"]
        assert answers["next"] is not None
        report = await call("read_report", of="evaluations", name="by-agent")
        assert "entrants" in report["parts"]
        part = await call("read_report", of="evaluations", name="by-agent", part="entrants")
        assert [row["name"] for row in part["entrants"]] == ["base", "sft"]


def test_an_agent_goes_from_a_check_to_a_report(world: World) -> None:
    token = json.loads((world.home / "client.json").read_text())["token"]
    work: Callable[[], None] = partial(anyio.run, session, world.url, token)
    # The browser of other tests has an event loop in this thread.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()

"""`steerboard mcp` as agents start it: a process that knows the server as the command line does."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from agent import Agent, Where, ask, environment_of, serving
from api_world import ApiWorld

from support.processes.command_line import Steerboard


async def models(agent: Agent) -> list[str]:
    return [one["name"] for one in (await agent.call("list", what="models"))["items"]]


async def refused(agent: Agent) -> str:
    return str((await agent.refused("list", what="models"))["code"])


def test_over_stdio_it_signs_in_as_the_command_line_does(world: ApiWorld, url: str, token: str, tmp_path: Path) -> None:
    environment = environment_of(url, None, tmp_path)
    del environment["STEERBOARD_URL"]

    async def started_meanwhile(agent: Agent) -> None:
        assert await refused(agent) == "no_server"
        (tmp_path / "client.json").write_text(json.dumps({"url": url, "token": token}))
        assert await models(agent) == ["tiny"]
        await agent.call("cancel", what="pipelines", name=world.start()["name"])
        assert len(agent.asked) == 1

    ask(Where(environment), started_meanwhile, user="accept")


def test_over_http_it_has_no_token_of_its_own(world: ApiWorld, url: str, token: str, tmp_path: Path) -> None:
    with serving(environment_of(url, None, tmp_path)) as address:
        where = Where(address, token)
        assert ask(where, models) == ["tiny"]
        team = replace(where, headers=(("X-Steerboard-Project", "nothing-like-it"),))
        assert ask(team, refused) == "not_found"


def test_it_does_not_listen_for_everyone_unasked(steerboard: Steerboard, url: str, token: str) -> None:
    done = steerboard(url, token, "mcp", "--http", "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 1
    assert "[no_allowed_host]" in done.stderr

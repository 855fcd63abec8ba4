"""docs/agents.md: its blocks start the server, and its table has the tools as they are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from agent import Agent, Where, ask, serving
from api_world import ApiWorld

from support.patience import PATIENCE

PAGE = (Path(__file__).parents[3] / "docs" / "agents.md").read_text()
# The addresses that the page writes.
SERVER, HTTP, COMMAND = "http://127.0.0.1:8700", "http://127.0.0.1:8710/mcp", "/path/to/steerboard/.venv/bin/steerboard"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def only(servers: dict[str, Any]) -> dict[str, Any]:
    (settings,) = (servers.get("mcpServers") or servers["servers"]).values()
    server: dict[str, Any] = settings
    return server


async def models(agent: Agent) -> list[str]:
    return [one["name"] for one in (await agent.call("list", what="models"))["items"]]


async def what_a_start_gets(agent: Agent) -> str:
    return str((await agent.refused("delete", what="models", name="tiny", confirm=True))["code"])


def test_the_blocks_of_the_page_start_the_server(
    world: ApiWorld, url: str, token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binaries = str(Path(sys.executable).parent)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STEERBOARD_")}
    signed_in = clean | {"STEERBOARD_URL": url, "STEERBOARD_TOKEN": token, "PATH": f"{binaries}:{os.environ['PATH']}"}
    make_token, serve = blocks("sh")
    made = subprocess.run(
        ["bash", "-euc", f'{make_token}\necho "$TOKEN"'],
        env=signed_in,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    ).stdout.strip()
    desktop, editor, over_http = (only(json.loads(block)) for block in blocks("json"))
    assert {name: editor[name] for name in desktop} == desktop
    assert editor["type"] == "stdio"
    assert (desktop["command"], desktop["args"]) == (COMMAND, ["mcp"])
    environment = {name: value.replace("TOKEN", made).replace(SERVER, url) for name, value in desktop["env"].items()}
    # It may read and run, and no more.
    assert ask(Where(clean | environment), models) == ["tiny"]
    assert serve == "steerboard mcp --http --port 8710\n"
    with serving(clean | {"STEERBOARD_URL": url}) as address:
        assert over_http["url"] == HTTP
        bearer = over_http["headers"]["Authorization"].removeprefix("Bearer ").replace("TOKEN", made)
        assert ask(Where(address, bearer), what_a_start_gets) == "missing_scope"


def test_the_table_of_the_page_has_every_tool_with_its_marks(inside: Where) -> None:
    async def marks(agent: Agent) -> dict[str, tuple[bool, bool]]:
        tools = (await agent.client.list_tools()).tools
        hints = {tool.name: tool.annotations for tool in tools if tool.annotations}
        return {name: (not one.read_only_hint, bool(one.destructive_hint)) for name, one in hints.items()}

    table = PAGE.split("## The tools")[1].split("###")[0]
    rows = re.findall(r"^\| (`.+?) \| .+ \| (yes|) ?\| (yes|) ?\|$", table, re.MULTILINE)
    shown = {
        name: (changes == "yes", asks == "yes")
        for names, changes, asks in rows
        for name in re.findall(r"`(\w+)`", names)
    }
    assert shown == ask(inside, marks)

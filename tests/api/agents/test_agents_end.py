"""Agents cancel, archive and delete: the person at the client confirms, or the call does where no one can be asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from agent import Agent, Where, ask
from api_world import ApiWorld

CANCEL: dict[str, Any] = {"what": "pipelines", "name": "small-1"}


def state(world: ApiWorld) -> str:
    return str(world.get("pipelines/small-1")["state"])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_user_is_asked_and_decides(world: ApiWorld, where: Where, mode: str) -> None:
    world.start()
    where = replace(where, mode=mode)

    async def declined(agent: Agent) -> None:
        # The agent cannot answer for its user.
        refused = await agent.refused("cancel", **CANCEL, confirm=True)
        assert refused["code"] == "declined"
        assert ["pipeline small-1" in question for question in agent.asked] == [True]

    async def accepted(agent: Agent) -> None:
        assert (await agent.call("cancel", **CANCEL))["cancelled"]["state"] == "cancelled"
        assert len(agent.asked) == 1

    for answer in ("decline", "cancel", "unchecked"):
        ask(where, declined, user=answer)  # type: ignore[arg-type]
        assert state(world) != "cancelled"
    ask(where, accepted, user="accept")
    assert state(world) == "cancelled"


def test_a_client_that_cannot_ask_is_told_to_confirm_by_the_call(world: ApiWorld, where: Where) -> None:
    world.start()

    async def cancel(agent: Agent) -> None:
        refused = await agent.refused("cancel", **CANCEL)
        assert refused["code"] == "confirmation_needed"
        assert "small-1" in refused["detail"]
        assert "confirm=true" in refused["hint"]
        assert state(world) != "cancelled"
        await agent.call("cancel", **CANCEL, confirm=True)
        assert state(world) == "cancelled"

    ask(where, cancel)


def test_no_one_is_asked_about_what_cannot_be_done(world: ApiWorld, inside: Where) -> None:
    world.start()

    async def end(agent: Agent) -> None:
        assert (await agent.refused("cancel", what="runs", name="small-1.sftt"))["status"] == 404
        kept = await agent.refused("delete", what="runs", name="small-1.chosen")
        assert kept["code"] == "cannot_delete"
        assert agent.asked == []

    ask(inside, end, user="accept")


def test_things_are_archived_restored_and_deleted(world: ApiWorld, inside: Where) -> None:
    run = world.post(
        "runs",
        {"config": {"run": "mix", "parts": [{"side": "chosen"}], "size": 5}, "inputs": {"parts.0": "hh"}, "name": "m"},
        status=201,
    )
    world.dataset("unused")

    async def end(agent: Agent) -> None:
        await agent.call("archive", what="datasets", name="unused")
        assert [one["name"] for one in (await agent.call("list", what="datasets"))["items"]] == ["hh"]
        await agent.call("archive", what="datasets", name="unused", restore=True)
        assert len(agent.asked) == 1
        await agent.call("delete", what="datasets", name="unused")
        cancelled = await agent.call("cancel", what="runs", name=run["id"])
        assert (cancelled["cancelled"]["name"], cancelled["cancelled"]["state"]) == ("m", "cancelled")
        await agent.call("delete", what="runs", name=run["id"])
        assert len(agent.asked) == 4

    ask(inside, end, user="accept")
    assert [one["name"] for one in world.get("datasets")["items"]] == ["hh"]
    assert world.get("runs")["items"] == []


def test_clients_know_beforehand_which_tools_end_something(inside: Where) -> None:
    async def hints(agent: Agent) -> dict[str, tuple[bool | None, bool | None]]:
        tools = (await agent.client.list_tools()).tools
        assert all(tool.annotations and tool.description for tool in tools)
        return {tool.name: (tool.annotations.read_only_hint, tool.annotations.destructive_hint) for tool in tools}  # type: ignore[union-attr]

    tool_hints = ask(inside, hints)
    assert {name for name, (_, destroys) in tool_hints.items() if destroys} == {"cancel", "archive", "delete"}
    changing = {"cancel", "archive", "delete", "start_run", "start_recipe", "evaluate"}
    assert {name for name, (reads, _) in tool_hints.items() if not reads} == changing

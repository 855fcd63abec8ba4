"""Each caller over HTTP has the rights of their own token, and no web page of others gets through."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import httpx
import pytest
from agent import Agent, Where, ask
from api_world import ApiWorld
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts import service as accounts
from steerboard.mcp.http import refuse_open_server
from steerboard.platform.database import transaction
from steerboard_contracts.errors import BadInput
from support.rows.other_token import token_headers

BEGIN = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def post(http: Where, body: Any = BEGIN, token: str | None = None, **headers: str) -> httpx.Response:
    given = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {token or http.token}"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(str(http.server), json=body, headers=given | named)


def test_a_call_without_a_valid_token_is_refused_at_the_door(world: ApiWorld, http: Where) -> None:
    assert post(http).status_code == 200
    assert post(http, token="of-no-one").status_code == 401
    assert post(http, Authorization="").status_code == 401
    nobody = httpx.post(str(http.server), json=BEGIN, headers={"Accept": "application/json, text/event-stream"})
    assert nobody.status_code == 401
    assert nobody.headers["WWW-Authenticate"].startswith("Bearer")


def test_other_hosts_and_origins_are_refused_even_with_a_token(world: ApiWorld, http: Where) -> None:
    assert post(http, Host="attacker.example").status_code == 421
    assert post(http, Origin="https://attacker.example").status_code == 403
    assert post(http, Host="agents.example", Origin="https://agents.example").status_code == 200


def test_a_session_belongs_to_the_token_that_began_it(world: ApiWorld, http: Where) -> None:
    begun = post(http)
    session = begun.headers["mcp-session-id"]
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    assert post(http, listing, mcp_session_id=session).status_code == 200
    other = world.token("read")["Authorization"].removeprefix("Bearer ")
    assert post(http, listing, other, mcp_session_id=session).status_code == 404


def test_each_caller_sees_the_project_of_their_token(
    world: ApiWorld, http: Where, sessions: sessionmaker[Session]
) -> None:
    with transaction(sessions) as session:
        team = accounts.create_project(session, "team", 0.1)
        team_id: uuid.UUID = team.id
    theirs = token_headers(sessions, team_id, "read")["Authorization"].removeprefix("Bearer ")

    async def models(agent: Agent) -> list[str]:
        return [one["name"] for one in (await agent.call("list", what="models"))["items"]]

    assert ask(http, models) == ["tiny"]
    assert ask(replace(http, token=theirs), models) == []
    assert ask(replace(http, headers=(("X-Steerboard-Project", "team"),)), models) == []

    async def refused(agent: Agent) -> str:
        return str((await agent.refused("list", what="models"))["code"])

    elsewhere = replace(http, token=theirs, headers=(("X-Steerboard-Project", "default"),))
    assert ask(elsewhere, refused) == "not_found"
    assert ask(replace(http, headers=(("X-Steerboard-Project", "../default"),)), refused) == "bad_project"


def test_others_reach_the_server_only_under_names_that_are_allowed() -> None:
    refuse_open_server("127.0.0.1", [])
    refuse_open_server("0.0.0.0", ["agents.example"])
    with pytest.raises(BadInput) as refused:
        refuse_open_server("0.0.0.0", [])
    assert refused.value.code == "no_allowed_host"

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playground_world import PlaygroundWorld, working
from sqlalchemy import select

from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings
from steerboard.playground.schemas import ComparisonIn
from steerboard.playground.service import create_comparison
from steerboard.playground.tables import PlaygroundAnswer
from steerboard_contracts.turns import Message
from support.patience import wait_until
from support.servers.fake_provider import URL, use_fake_provider

DECODING = {"max_new_tokens": 30}


class Served(ThreadingHTTPServer):
    """An OpenAI-compatible server that answers `hello there`, once it is allowed to."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[dict[str, Any]] = []
        self.may_speak = threading.Event()


class Handler(BaseHTTPRequestHandler):
    server: Served

    def do_POST(self) -> None:
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for piece in ("hel", "lo there"):
            self._send({"choices": [{"delta": {"content": piece}, "finish_reason": None}]})
            self.server.may_speak.wait(60)
        self._send({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"completion_tokens": 7}})
        self.wfile.write(b"data: [DONE]\n\n")

    def _send(self, chunk: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.flush()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Served]:
    with Served() as started:
        thread = threading.Thread(target=started.serve_forever)
        thread.start()
        yield started
        started.may_speak.set()
        started.shutdown()
        thread.join()


def add_endpoint(world: PlaygroundWorld, server: Served, **more: Any) -> None:
    world.settings.allowed_private = "127.0.0.1"
    body = {
        "name": "elsewhere",
        "base_url": f"http://127.0.0.1:{server.server_port}/v1",
        "model": "theirs",
        "api_key": "sesame",
        "policy_model": "dt",
        **more,
    }
    answer = world.client.post("/api/v1/projects/default/endpoints", json=body)
    assert answer.status_code == 201, answer.text


def test_an_endpoint_and_a_local_model_answer_at_the_same_time(
    world: PlaygroundWorld, server: Served, settings: Settings
) -> None:
    add_endpoint(world, server)
    with working(settings):
        made = world.compare(
            {"endpoint": "elsewhere", "score": 2.5, "decoding": DECODING},
            {"model": "dt", "score": 2.5, "decoding": DECODING},
            reward="reward",
            seed=3,
        )
        # The endpoint holds back its answer: the local column ends, and so does another comparison.
        wait_until(lambda: world.comparison(made)["columns"][1]["state"] == "succeeded")
        wait_until(lambda: world.comparison(made)["columns"][0]["text"] == "hel")
        assert world.finish(world.compare({"model": "dt", "score": 1, "decoding": DECODING}))["ended_at"]
        assert world.comparison(made)["columns"][0]["state"] == "running"
        server.may_speak.set()
        remote, local = world.finish(made)["columns"]
    assert (remote["state"], remote["text"], remote["tokens"], remote["finished"]) == (
        "succeeded",
        "hello there",
        7,
        True,
    )
    assert remote["endpoint"]["name"] == "elsewhere"
    assert remote["model"] is None
    assert isinstance(remote["reward"], float)
    assert remote["reward"] != local["reward"]
    [body] = server.bodies
    assert body["chat_template_kwargs"] == {"rm_score": "2.50"}
    assert (body["max_tokens"], body["seed"]) == (30, 3)


def test_guidance_is_asked_of_an_endpoint_that_takes_it_and_of_no_other(
    world: PlaygroundWorld, server: Served, settings: Settings
) -> None:
    add_endpoint(world, server)
    server.may_speak.set()
    guided = {"endpoint": "elsewhere", "score": 2.5, "decoding": {**DECODING, "guidance": 3}}
    problem = world.compare(guided, status=422)
    assert (problem["code"], "models serve --guidance" in problem["hint"]) == ("no_guidance", True)
    there = "/api/v1/projects/default/endpoints/elsewhere"
    world.client.patch(there, json={"guides": True, "policy_model": "sft"})
    assert world.compare({**guided, "score": None}, status=422)["code"] == "no_guidance"
    world.client.patch(there, json={"policy_model": "dt"})
    with working(settings):
        plain = {**guided, "decoding": {**DECODING, "guidance": 1}}
        columns = world.finish(world.compare(guided, plain))["columns"]
    assert [column["state"] for column in columns] == ["succeeded"] * 2
    assert [body.get("vllm_xargs") for body in server.bodies[:2]] in ([{"guidance": 3}, None], [None, {"guidance": 3}])
    # It was asked for while the endpoint took it.
    made = world.compare({**guided, "score": 1})
    world.client.patch(there, json={"guides": False})
    with working(settings):
        late = world.finish(made)["columns"][0]
    assert (late["state"], late["error"]["code"], len(server.bodies)) == ("failed", "no_guidance", 2)


def test_a_column_asks_another_provider(
    world: PlaygroundWorld, server: Served, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = use_fake_provider(monkeypatch)
    add_endpoint(world, server, base_url=URL, api_key="sk-fake")
    with working(settings):
        made = world.compare({"endpoint": "elsewhere", "score": 2.5, "decoding": DECODING}, seed=3)
        [column] = world.finish(made)["columns"]
    assert (column["state"], column["text"], column["tokens"]) == ("succeeded", "fake words", 2)
    assert [(question.model, question.max_tokens, question.seed, question.score_text) for question in asked] == [
        ("theirs", 30, 3, "2.50")
    ]
    assert server.bodies == []


def test_an_endpoint_at_an_address_that_is_not_allowed_fails_its_column(
    world: PlaygroundWorld, server: Served, settings: Settings
) -> None:
    add_endpoint(world, server)
    with working(settings.model_copy(update={"allowed_private": ""})):
        answer = world.finish(world.compare({"endpoint": "elsewhere", "decoding": DECODING}))["columns"][0]
    assert (answer["state"], answer["error"]["code"]) == ("failed", "address_refused")
    assert server.bodies == []


def test_a_cancelled_endpoint_column_keeps_nothing_waiting(
    world: PlaygroundWorld, server: Served, settings: Settings
) -> None:
    add_endpoint(world, server)
    with working(settings):
        made = world.compare({"endpoint": "elsewhere", "decoding": DECODING})
        wait_until(lambda: world.comparison(made)["columns"][0]["text"] == "hel")
        world.post(f"comparisons/{made['id']}/cancel", status=200)
        server.may_speak.set()
        assert world.finish(world.compare({"model": "dt", "decoding": DECODING}))["ended_at"]
    assert (world.comparison(made)["columns"][0]["state"], world.comparison(made)["columns"][0]["text"]) == (
        "cancelled",
        "hel",
    )


def test_an_answer_is_reused_only_for_the_server_that_gave_it(
    world: PlaygroundWorld, server: Served, settings: Settings
) -> None:
    add_endpoint(world, server)
    server.may_speak.set()
    asked = {"endpoint": "elsewhere", "score": 2.5, "decoding": {**DECODING, "temperature": 0.1, "top_p": 0.95}}

    def serve_model(name: str) -> None:
        answer = world.client.patch("/api/v1/projects/default/endpoints/elsewhere", json={"model": name})
        assert answer.status_code == 200, answer.text

    made = world.compare(asked)
    serve_model("another")
    with working(settings):
        assert world.finish(made)["columns"][0]["state"] == "succeeded"
        assert [body["model"] for body in server.bodies] == ["another"]
        assert world.compare(asked)["columns"][0]["reused"] is True
        serve_model("theirs")
        again = world.compare(asked)
        assert again["columns"][0]["reused"] is False
        world.finish(again)
    assert [body["model"] for body in server.bodies] == ["another", "theirs"]


def test_a_column_whose_endpoint_was_deleted_says_so_by_its_name(
    world: PlaygroundWorld, server: Served, settings: Settings
) -> None:
    add_endpoint(world, server)
    made = world.compare({"endpoint": "elsewhere", "decoding": DECODING})
    assert world.client.delete("/api/v1/projects/default/endpoints/elsewhere").status_code < 300
    with working(settings.model_copy(update={"allowed_private": ""})):
        answer = world.finish(made)["columns"][0]
    assert (answer["state"], answer["name"]) == ("failed", "elsewhere")
    assert answer["error"]["detail"] == "elsewhere was deleted before it could answer"


def test_each_column_of_a_battle_is_asked_after_its_own_answers(
    world: PlaygroundWorld, server: Served, settings: Settings
) -> None:
    """An arena's comparison has a conversation for each column."""
    add_endpoint(world, server)
    server.may_speak.set()
    conversations = [
        [Message(role="user", content="Hi"), Message(role="assistant", content=said), Message(role="user", content="?")]
        for said in ("one", "two", "red", "house")
    ]
    columns = [{"endpoint": "elsewhere"}, {"endpoint": "elsewhere"}, {"model": "dt"}, {"model": "dt"}]
    asked = ComparisonIn.model_validate(
        {"prompt": "Hi", "columns": [{**entrant, "score": 1, "decoding": DECODING} for entrant in columns]}
    )
    with working(settings):
        with transaction(world.sessions) as session:
            project = session.merge(world.project)
            made = create_comparison(session, project, asked, "test", blind=True, prompts=conversations).id

        def answers() -> list[PlaygroundAnswer]:
            with world.sessions() as session:
                mine = select(PlaygroundAnswer).where(PlaygroundAnswer.comparison_id == made)
                return list(session.scalars(mine.order_by(PlaygroundAnswer.place)))

        wait_until(lambda: all(answer.ended_at for answer in answers()))
    assert [answer.state for answer in answers()] == ["succeeded"] * 4
    assert sorted(body["messages"][1]["content"] for body in server.bodies) == ["one", "two"]
    assert answers()[2].text != answers()[3].text, "each answers its own conversation"

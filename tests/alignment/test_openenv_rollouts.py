"""Rollouts with an OpenEnv server: a session each, what is sent and read, and what happens when sessions end."""

from __future__ import annotations

import textwrap
import time
from threading import Thread

import pytest
from pydantic import ValidationError
from websockets.datastructures import Headers
from websockets.http11 import Response
from websockets.sync.server import serve

from steerboard_contracts.network.safe_http import AddressRefused
from steerboard_contracts.online.environments import OpenEnvServer
from steerboard_workers.alignment.online import openenv
from steerboard_workers.alignment.online.environment_protocol import Call, EnvironmentFailed, Step
from steerboard_workers.alignment.online.openenv import EnvironmentServerFailed, OpenEnv
from support.servers.openenv_server import openenv_server

COUNTS = """
import json, os, time

class Environment:
    def reset(self, given):
        self.heard = []
        return json.dumps(given, sort_keys=True)

    def step(self, answer):
        if answer == "sleep":
            time.sleep(60)
        if answer == "hang up":
            raise SystemExit
        if answer == "hang up once" and not os.path.exists(FLAG):
            open(FLAG, "w").close()
            raise SystemExit
        if answer == "invalid":
            raise ValueError("is no move")
        if answer == "raise":
            raise RuntimeError("the board is broken")
        self.heard.append(answer)
        text = {"pid": str(os.getpid()), "empty": "", "long": "x" * 100_001, "huge": "x" * 4_000_000}.get(answer)
        reward = {"much": "much", "endless": float("inf"), "none": None}.get(answer, len(self.heard))
        return "+".join(self.heard) if text is None else text, reward, answer == "end"
"""
ROW = {"row": 7, "seed": (5 << 40) + 3, "prompt": [{"role": "user", "content": "How many?"}], "reference": "8"}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("openenv")
    file = folder / "environment.py"
    file.write_text(textwrap.dedent(COUNTS).replace("FLAG", repr(str(folder / "hung-up"))))
    return file


@pytest.fixture(scope="module")
def server(file):
    with openenv_server(file) as server:
        yield server


@pytest.fixture
def rollouts(server):
    """rollouts(url=..., **fields) -> an environment, whose sessions end with the test."""
    opened = []

    def start(url: str = server.url, **fields) -> OpenEnv:
        named = {"kind": "openenv", "url": url, "action_field": "message", "observation_field": "text", **fields}
        opened.append(OpenEnv(OpenEnvServer.model_validate(named), "127.0.0.1"))
        return opened[-1]

    yield start
    for environment in opened:
        environment.end()


def said(text: str, reward: float | None = None, done: bool = False) -> Step:
    return Step([{"role": "user", "content": text}], reward, done)


def call(key: int, *answers: str) -> Call:
    return Call(key, ROW, answers)


def test_each_rollout_has_a_session_of_its_own_which_ends_with_it(rollouts):
    environment = rollouts()
    assert environment.step([call(0), call(1)], 0) == [said('{"seed": 3}')] * 2
    assert environment.step([call(0, "a"), call(1, "b")], 0) == [said("a", 1.0), said("b", 1.0)]
    assert environment.step([call(0, "a", "c"), call(1, "b", "end")], 0) == [said("a+c", 2.0), said("b+end", 2.0, True)]
    counting = rollouts(observation_field="open")
    assert counting.step([call(0)], 0) == [said("2")]  # with the other rollout that has not ended
    environment.end()
    assert counting.step([call(0, "a")], 0) == [said("1", 1.0)]
    # The next sampling has new sessions.
    assert environment.step([call(0)], 0) == [said('{"seed": 3}')]
    assert environment.step([call(0, "d")], 0) == [said("d", 1.0)]


@pytest.mark.parametrize(
    ("fields", "first"),
    [
        ({"reset": {"level": 2}}, '{"level": 2, "seed": 3}'),
        ({"send_row": True}, '"reference": "8", "row": 7, "seed": 3}'),
        ({"observation_field": None}, '{"text": "{\\"seed\\": 3}", "turns": [], "open": 1}'),
        ({"begin": "both"}, 'How many?\n\n{"seed": 3}'),
    ],
)
def test_a_rollout_begins_with_what_the_reset_says(rollouts, fields, first):
    (step,) = rollouts(**fields).step([call(0)], 0)
    (message,) = step.observation
    assert message["role"] == "user"
    assert message["content"].endswith(first)


def test_a_rollout_may_begin_with_the_prompt_of_its_row_alone(rollouts):
    assert rollouts(begin="prompt").step([call(0)], 0) == [Step()]


def test_fields_inside_of_others_are_written_and_read(rollouts):
    environment = rollouts(observation_field="turns.-1.content", begin="prompt")
    environment.step([call(0)], 0)
    assert environment.step([call(0, "a")], 0) == [said("a", 1.0)]
    named = {"kind": "openenv", "url": "http://there", "action": {"type": "call", "arguments": {"n": 1}}}
    config = OpenEnvServer.model_validate({**named, "action_field": "arguments.text"})
    assert config.action_of("a") == {"type": "call", "arguments": {"n": 1, "text": "a"}}
    assert config.action == named["action"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("raise", "the board is broken, on the answer 'raise' of row 7"),
        ("invalid", r"Invalid message: \['message'\]: is no move, on the answer 'invalid'"),
        ("empty", "the observation is empty, and the rollout is not done"),
        ("long", "an observation has more than 100,000 characters"),
        ("huge", "its reply has more than 3,200,000 bytes"),
        ("much", "the reward is 'much', and not a number"),
    ],
)
def test_what_is_no_step_fails_the_run_with_the_answer(rollouts, answer, message):
    environment = rollouts()
    environment.step([call(0), call(1)], 1)
    with pytest.raises(EnvironmentFailed, match=message):
        environment.step([call(0, "a"), call(1, answer)], 1)


def test_a_field_that_is_not_there_is_named_with_those_that_are(rollouts):
    with pytest.raises(EnvironmentFailed, match=r"has no 'word'; it has text, turns, open, on reset of row 7"):
        rollouts(observation_field="word").step([call(0)], 0)


def test_an_invalid_action_has_the_reward_that_is_set_for_it_and_ends_its_rollout(rollouts):
    environment = rollouts(invalid_reward=-0.5)
    environment.step([call(0), call(1)], 0)
    steps = environment.step([call(0, "invalid"), call(1, "a")], 0)
    assert steps == [Step((), -0.5, done=True), said("a", 1.0)]


def test_rewards_that_are_no_numbers_are_none(rollouts):
    environment = rollouts()
    environment.step([call(0), call(1)], 0)
    assert environment.step([call(0, "none"), call(1, "endless")], 0) == [said("none"), said("endless")]


def test_a_rollout_that_takes_too_long_is_lost_alone(rollouts):
    environment = rollouts(seconds=1.0)
    environment.step([call(0), call(1)], 0)
    began = time.monotonic()
    assert environment.step([call(0, "sleep"), call(1, "a")], 0) == [Step(lost=True), said("a", 1.0)]
    assert time.monotonic() - began < 10
    assert environment.step([call(1, "a", "b")], 0) == [said("a+b", 2.0)]


def test_a_session_that_ends_too_early_is_opened_again_and_hears_the_earlier_answers(rollouts):
    environment = rollouts()
    environment.step([call(0)], 0)
    environment.step([call(0, "a")], 0)
    assert environment.step([call(0, "a", "hang up once")], 0) == [said("a+hang up once", 2.0)]


def test_a_rollout_that_goes_another_way_when_it_is_repeated_is_lost(file):
    with openenv_server(file) as own:
        fields = {"url": own.url, "action_field": "message", "observation_field": "text"}
        environment = OpenEnv(OpenEnvServer(kind="openenv", **fields), "127.0.0.1")
        environment.step([call(0), call(1)], 0)
        environment.step([call(0, "pid"), call(1, "a")], 0)
        own.kill()
        own.start()
        steps = environment.step([call(0, "pid", "b"), call(1, "a", "b")], 0)
    assert steps == [Step(lost=True), said("a+b", 2.0)]


def test_rollouts_without_a_session_are_left_out_until_they_are_too_many(rollouts, monkeypatch):
    monkeypatch.setattr(openenv, "WAITS", (0.0,))
    environment = rollouts()
    environment.step([call(0), call(1)], 0)
    assert environment.step([call(0, "hang up"), call(1, "a")], 1) == [Step(lost=True), said("a", 1.0)]
    with pytest.raises(EnvironmentServerFailed, match=r"^http://127.0.0.1:\d+: .*\n  Check the server, then resume"):
        environment.step([call(1, "a", "hang up")], 0)


def test_a_server_that_dies_and_stays_away_fails_the_run(file, monkeypatch):
    monkeypatch.setattr(openenv, "WAITS", (0.0, 0.0))
    with openenv_server(file) as own:
        environment = OpenEnv(OpenEnvServer(kind="openenv", url=own.url, action_field="message"), "127.0.0.1")
        environment.step([call(0)], 0)
        own.kill()
        with pytest.raises(EnvironmentServerFailed, match="Connection refused"):
            environment.step([call(0, "a")], 0)


def test_a_server_that_takes_too_few_sessions_is_named_with_the_number_it_needs(file, monkeypatch):
    monkeypatch.setattr(openenv, "WAITS", (0.0,))
    with openenv_server(file, sessions=2) as own:
        environment = OpenEnv(OpenEnvServer(kind="openenv", url=own.url, action_field="message"), "127.0.0.1")
        for _ in range(2):
            environment.step([call(0), call(1)], 0)
            environment.end()
        with pytest.raises(EnvironmentServerFailed, match=r"2/2 sessions\n  Let it take 3 sessions"):
            environment.step([call(0), call(1), call(2)], 0)


@pytest.mark.parametrize(
    ("status", "headers", "message"),
    [
        (404, {}, "HTTP 404"),
        (307, {"Location": "ws://127.0.0.1:1/ws"}, "cannot follow redirect"),
        (200, {}, "HTTP 200"),
    ],
)
def test_a_server_without_sessions_fails_the_run_and_no_redirect_is_followed(monkeypatch, status, headers, message):
    monkeypatch.setattr(openenv, "WAITS", ())

    def refuse(*_) -> Response:
        return Response(status, "No", Headers(headers))

    with serve(lambda _: None, "127.0.0.1", 0, process_request=refuse) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        environment = OpenEnv(OpenEnvServer(kind="openenv", url=url, action_field="message"), "127.0.0.1")
        with pytest.raises(EnvironmentServerFailed, match=message):
            environment.step([call(0)], 0)


def test_private_addresses_are_refused_at_once_and_at_every_connection(server, monkeypatch):
    config = OpenEnvServer(kind="openenv", url=server.url, action_field="message")
    with pytest.raises(AddressRefused, match="not at a public address"):
        OpenEnv(config, "")
    with monkeypatch.context() as patch:
        patch.setattr(openenv, "refuse_private", lambda *_: None)
        environment = OpenEnv(config, "")
    with pytest.raises(AddressRefused, match="not at a public address"):
        environment.step([call(0)], 0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"url": "https://key@host"}, "url"),
        ({"url": "https://host/?key=1"}, "url"),
        ({"url": "ws://host"}, "url"),
        ({"action_field": "a..b"}, "action_field"),
        ({"action": {"a": 1}, "action_field": "a.b"}, "'a' of `action` is no object"),
        ({"action": {"a": float("nan")}}, "NaN and Infinity are not JSON"),
        ({"reset": {"seed": 1}}, "the run gives seed by the row"),
        ({"reset": {"prompt": ""}, "send_row": True}, "the run gives prompt by the row"),
        ({"reset": {"a": "x" * 10_001}}, "more than 10,000 characters"),
    ],
)
def test_a_config_that_no_server_could_serve_is_refused(fields, message):
    with pytest.raises(ValidationError, match=message):
        OpenEnvServer.model_validate({"kind": "openenv", "url": "http://host", "action_field": "message", **fields})

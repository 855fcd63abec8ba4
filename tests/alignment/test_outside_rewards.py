"""Rewards from a Python file that the operator allows, and from a server: their limits, and what their failures say."""

from __future__ import annotations

import hashlib
import math
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from steerboard_contracts.files.local_folders import FolderNotAllowed, LocalFolders
from steerboard_contracts.methods import needed_method
from steerboard_contracts.network.safe_http import AddressRefused, BadUrl
from steerboard_contracts.online.reward_access import RewardAccess
from steerboard_contracts.online.reward_rules import HttpReward, PythonReward
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.online import reward_endpoint
from steerboard_workers.alignment.online.reward_endpoint import RewardEndpoint, RewardEndpointFailed
from steerboard_workers.alignment.online.reward_function import RewardFunction, RewardFunctionFailed
from steerboard_workers.alignment.online.rows import RowTexts
from steerboard_workers.alignment.online.scoring import AnswerRewards, UnscoredAnswers
from steerboard_workers.alignment.rendering.render import Renderer
from steerboard_workers.alignment.rollouts import Rollout
from support.models.template_families import tokenizer_of
from support.servers.other_server import Answer, other_server

CODE = """
import os, time

def reward(prompts, answers, references):
    print("heard by nobody")
    found = []
    for prompt, answer, reference in zip(prompts, answers, references):
        if answer == "sleep":
            time.sleep(60)
        if answer == "environment":
            found.append(float(any(name.startswith(("STEERBOARD", "SECRET")) for name in os.environ)))
            continue
        found.append({"nan": float("nan"), "none": None}.get(answer, 1.0 if answer == reference else 1 / len(answer)))
    return found
"""


def written(folder: Path, code: str = CODE, **fields) -> tuple[PythonReward, LocalFolders]:
    file = folder / "reward.py"
    file.write_text(code)
    given = {"kind": "python", "file": str(file), "sha256": hashlib.sha256(code.encode()).hexdigest(), **fields}
    return PythonReward.model_validate(given), LocalFolders(roots=(folder,))


def scored(scorer, answers: list[str], most_lost: int = 99) -> list[float]:
    prompts = [[{"role": "user", "content": f"question {place}"}] for place in range(len(answers))]
    return scorer.score(prompts, answers, ["42"] * len(answers), most_lost)


def test_a_function_sees_prompts_answers_and_references_and_no_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_THING", "x")
    monkeypatch.setenv("STEERBOARD_HOME", "x")
    function = RewardFunction.open(*written(tmp_path))
    rewards = scored(function, ["42", "ab", "nan", "none", "environment"])
    assert rewards[:2] == [1.0, 0.5]
    assert [math.isnan(reward) for reward in rewards[2:]] == [True, True, False]
    assert rewards[4] == 0


def test_only_the_answer_that_takes_too_long_is_left_out_and_no_process_stays(tmp_path):
    function = RewardFunction.open(*written(tmp_path, seconds=1.5))
    child = function.sandbox.child
    assert child is not None
    rewards = scored(function, ["42", "sleep", "ab"])
    assert rewards[::2] == [1.0, 0.5]
    assert math.isnan(rewards[1])
    assert not Path(f"/proc/{child.pid}").exists()
    began = time.monotonic()
    assert all(math.isnan(reward) for reward in scored(function, ["sleep"] * 50, most_lost=0)[1:])
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (CODE.replace("found = []", "1 / (len(answers[0]) - 5)"), "ZeroDivisionError: .*line 6.*on the answer 'hello'"),
        ("def reward(prompts, answers, references):\n    return [1.0] * 3", "returned 3 rewards for 2 answers"),
        ("def reward(*_):\n    return 1.0", "returned no list of numbers"),
        ("def rewards(): ...", "defines no `reward"),
        ("1 +", "SyntaxError"),
        ("def reward(*_):\n    raise SystemExit(3)", "SystemExit: 3"),
        ("def reward(*_):\n    bytearray(8 << 30)", "MemoryError"),
    ],
)
def test_a_function_that_fails_is_shown_with_the_answer(tmp_path, code, message):
    with pytest.raises(RewardFunctionFailed, match=message):
        scored(RewardFunction.open(*written(tmp_path, code)), ["hello", "hello"])


def test_only_the_file_that_was_named_and_allowed_is_run(tmp_path):
    inside, outside = tmp_path / "allowed", tmp_path / "else"
    inside.mkdir()
    outside.mkdir()
    rule, folders = written(inside)
    with pytest.raises(FolderNotAllowed) as refused:
        RewardFunction.open(rule, LocalFolders())
    assert "STEERBOARD_REWARD_ROOTS" in str(refused.value)
    other, _ = written(outside)
    with pytest.raises(FolderNotAllowed):
        RewardFunction.open(other, folders)
    (inside / "link.py").symlink_to(outside / "reward.py")
    for name in ("link.py", "../else/reward.py", "absent.py"):
        with pytest.raises(FolderNotAllowed):
            RewardFunction.open(rule.model_copy(update={"file": f"{inside}/{name}"}), folders)
    os.mkfifo(inside / "pipe.py")
    with pytest.raises(FolderNotAllowed):
        RewardFunction.open(rule.model_copy(update={"file": str(inside / "pipe.py")}), folders)
    (inside / "reward.py").write_text(CODE + "\n# changed")
    with pytest.raises(RewardFunctionFailed, match=r"has the SHA-256 .*, and the run asks for"):
        RewardFunction.open(rule, folders)


def test_answers_without_a_reward_are_counted_and_fail_the_run_above_a_share(tmp_path):
    rule, folders = written(tmp_path)
    ids = np.arange(3, dtype=np.int32)

    def score(*texts: str, **config):
        given = {"method": "rloo", "rules": [rule.model_dump()], **config}
        texts_of = RowTexts({7: "42"}, {7: [{"role": "user", "content": "?"}]})
        passes = type("NoModels", (), {"has": lambda *_: False})()
        rewards = AnswerRewards(
            needed_method("rloo").config.model_validate(given), texts_of, passes, RewardAccess(folders=folders)
        )
        answers = [Rollout(7, n, ids, np.zeros(3, np.float32), text, True) for n, text in enumerate(texts)]
        return rewards.score(answers, [Example(7, ids, (ids,)) for _ in answers])

    scores = score("42", "nan", "ab", "none", max_unscored=0.5)
    np.testing.assert_array_equal(scores.sources["python"], [1, np.nan, 0.5, np.nan])
    assert scores.unscored == 0.5
    with pytest.raises(
        UnscoredAnswers, match=r"2 of 4 answers have no reward, the first one of row 7 by python: 'nan'"
    ):
        score("42", "nan", "ab", "none")


def test_a_reward_model_with_other_tokens_is_given_the_text_and_no_end_that_was_not_written(own_tokenizer):
    renderer = Renderer(own_tokenizer, "plain", 64)

    class Passes:
        def has(self, model: str) -> bool:
            return model == "reward"

        def renderer(self, model: str) -> Renderer:
            return renderer

        def per_sequence(self, examples, model=None):
            self.read = [np.concatenate([e.prompt, *e.responses]).tolist() for e in examples]
            return [np.array([float(len(e.responses[0]))], np.float32) for e in examples]

    ids, prompt = np.arange(90, 93, dtype=np.int32), [{"role": "user", "content": "bake bread"}]
    given = (("flour " * 64, True), ("mix", True), ("mix", False))
    answers = [Rollout(7, n, ids, np.zeros(3, np.float32), *end) for n, end in enumerate(given)]
    config = needed_method("rloo").config.model_validate({"method": "rloo", "max_unscored": 0.5})
    passes = Passes()
    scores = AnswerRewards(config, RowTexts({}, {7: prompt}), passes).score(answers, [Example(7, ids, (ids,))] * 3)
    whole = renderer.render(prompt, "mix")
    assert whole is not None
    assert passes.read == [whole.ids, whole.ids[:-1]]
    # The first is longer than the window of the model that scores.
    length = len(whole.ids) - whole.prompt_length
    np.testing.assert_array_equal(scores.total, [np.nan, length, length - 1])


@pytest.mark.parametrize("as_text", [True, False])
def test_an_ended_answer_is_read_where_the_template_ends_a_conversation(as_text):
    renderer = Renderer(tokenizer_of("chatml"), "chat", 256, whole=True)
    prompt = [{"role": "user", "content": "Name a city."}]
    policy = Renderer(tokenizer_of("chatml"), "chat", 256).render(prompt, "Lima")
    ids = np.array(policy.ids[policy.prompt_length :], dtype=np.int32)
    example = Example(7, np.array(policy.ids[: policy.prompt_length], dtype=np.int32), (ids,))
    cut = replace(example, responses=(ids[:-1],))

    class Passes:
        def has(self, model: str) -> bool:
            return model == "reward"

        def renderer(self, model: str) -> Renderer | None:
            return renderer if as_text else None

        def closing_ids(self, model: str) -> list[int]:
            return renderer.closing_ids

        def per_sequence(self, examples, model=None):
            self.read = [np.concatenate([e.prompt, *e.responses]).tolist() for e in examples]
            return [np.array([0.0], np.float32) for _ in examples]

    answers = [
        Rollout(7, n, ids, np.zeros(len(ids), np.float32), "Lima", finished) for n, finished in enumerate((1, 0))
    ]
    config, passes = needed_method("rloo").config.model_validate({"method": "rloo"}), Passes()
    AnswerRewards(config, RowTexts({}, {7: prompt}), passes).score(answers, [example, cut])
    assert passes.read == [renderer.render(prompt, "Lima").ids, policy.ids[:-1]]


# -- a server ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(reward_endpoint, "WAIT_SECONDS", 0.0)
    with other_server() as other:
        yield other


def asked(server, **fields) -> RewardEndpoint:
    rule = HttpReward.model_validate({"kind": "http", "url": f"{server.url}/score", **fields})
    return RewardEndpoint(rule, "127.0.0.1")


def test_a_server_is_asked_in_batches_and_again_where_it_fails_on_the_way(server):
    failed: list[int] = []

    def answer(seen) -> Answer:
        if len(failed) < 2:
            failed.append(1)
            return Answer.json({}, 503)
        return Answer.json({"rewards": [None if text == "none" else float(len(text)) for text in seen.json["answers"]]})

    server.answer = answer
    rewards = scored(asked(server, batch=2), ["a", "bb", "none", "dddd", "e"])
    np.testing.assert_array_equal(rewards, [1, 2, np.nan, 4, 1])
    assert [len(request.json["answers"]) for request in server.seen] == [2, 2, 2, 2, 1]
    assert server.seen[-1].json["prompts"] == [[{"role": "user", "content": "question 4"}]]
    assert server.seen[-1].json["references"] == ["42"]


@pytest.mark.parametrize(
    ("answer", "message", "calls"),
    [
        (Answer.json({}, 503), "status 503", 2),
        (Answer.json({}, 403), "status 403", 1),
        (Answer(307, headers={"Location": "/elsewhere"}), "status 307", 1),
        (Answer.json({"rewards": [1.0]}), "1 rewards for 2 answers", 1),
        (Answer.json({"rewards": ["good", 1]}), "its answer is not", 1),
        (Answer.json({"rewards": "12"}), "its answer is not", 1),
        (Answer.json({"rewards": [10**400, 1]}), "its answer is not", 1),
        (Answer.json([1]), "its answer is not", 1),
    ],
)
def test_a_server_that_gives_no_rewards_fails_the_run_with_its_reason(server, answer, message, calls):
    server.answer = lambda _: answer
    with pytest.raises(RewardEndpointFailed, match=message):
        scored(asked(server, retries=1), ["a", "b"])
    assert len(server.seen) == calls


def test_answers_that_a_server_takes_too_long_for_are_left_out(server):
    server.answer = lambda _: time.sleep(2) or Answer.json({"rewards": [1.0]})  # type: ignore[func-returns-value]
    rewards = scored(asked(server, retries=0, seconds=0.3, batch=1), ["a", "b", "c"], most_lost=0)
    assert all(math.isnan(reward) for reward in rewards)
    assert len(server.seen) == 1


def test_private_addresses_are_refused_before_anything_is_sampled(server):
    rule = HttpReward.model_validate({"kind": "http", "url": f"{server.url}/score"})
    with pytest.raises(AddressRefused, match="not at a public address"):
        RewardEndpoint(rule, "")
    with pytest.raises(BadUrl):
        RewardEndpoint(rule.model_copy(update={"url": "http://:99999/"}), "")
    assert server.seen == []


def test_a_name_that_leads_to_a_private_address_later_is_refused_at_the_call(server, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(reward_endpoint, "refuse_private", lambda *_: None)
        endpoint = RewardEndpoint(HttpReward(kind="http", url=f"{server.url}/score"), "")
    with pytest.raises(AddressRefused, match="not at a public address"):
        scored(endpoint, ["a"])
    assert not server.seen

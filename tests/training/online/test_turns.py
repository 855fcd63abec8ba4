"""Rollouts of several turns as runs: one turn is a plain run, what was sampled is learned, kill -9 changes nothing."""

from __future__ import annotations

import hashlib
import json
import random
import shutil

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from running import final_weights, forked, metrics_of, ran, recorded, run_ranks, weights_of

from steerboard_contracts.methods import needed_method
from steerboard_contracts.online.reward_access import RewardAccess
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_workers.alignment.online.environment_protocol import EnvironmentFailed
from steerboard_workers.stages.runtime import Stage
from support.environments import FOLDER, environment, of_file
from support.servers.openenv_server import openenv_server

QUICK = {
    "run": "train",
    "batch": 4,
    "answers": 3,
    "epochs": 6,
    "max_length": 128,
    "max_new_tokens": 6,
    "checkpoint_seconds": 0,
    "checkpoint_every": 0,
    "lr": 1e-2,
    "max_steps": 3,
    "evaluate_rows": 4,
    "temperature": 0.9,
}
REWARD = "def reward(prompts, answers, references):\n    return [float('s' in answer) for answer in answers]\n"
ONE_TURN = (
    "class Environment:\n    def reset(self, row): pass\n"
    "    def step(self, answer): return None, float('s' in answer), True\n"
)
METHODS = ("rloo", "grpo", "reinforce_pp", "ppo")


@pytest.fixture(scope="module")
def ending_model(base_model, tmp_path_factory):
    """The base model, whose answers end at any of many tokens: an untrained model hardly ever draws a single one."""
    folder = tmp_path_factory.mktemp("ending") / "model"
    shutil.copytree(base_model, folder)
    config = json.loads((folder / "config.json").read_text())
    ends = [config["eos_token_id"], *range(50, 150)]
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
    return folder


@pytest.fixture(scope="module")
def started(make_stage, ending_model, reward_model):
    """started(method, **config) -> a stage of the environment `asked`, unless told else."""

    def start(method: str = "rloo", folder=FOLDER, **config) -> Stage:
        if "rules" not in config:
            config = {"environment": environment("asked", max_turns=3), **config}
        access = {"folders": {"roots": [str(folder)]}}
        stage = make_stage({**QUICK, "method": method, **config}, model=ending_model, reward_access=access)
        if method == "distillation":
            teacher = ModelInput(name="teacher", path=str(ending_model), content_hash="t")
            stage.spec = stage.spec.model_copy(update={"inputs": {**stage.spec.inputs, "teacher": teacher}})
        if method == "ppo":
            given = ModelInput(name="reward", path=str(reward_model), content_hash="r")
            stage.spec = stage.spec.model_copy(update={"inputs": {**stage.spec.inputs, "reward": given}})
        return stage

    return start


def without_names(metrics: dict[int, dict[str, float]]) -> dict[int, dict[str, float]]:
    """The metrics that both runs have, under one name."""
    own = (
        "reward_python",
        "reward_environment",
        "turns",
        "ended_by_environment",
        "environment_tokens",
        "reward_turn_1",
    )
    kept = (*own, *(f"eval_{name}" for name in own))
    return {step: {name: v for name, v in values.items() if name not in kept} for step, values in metrics.items()}


@pytest.mark.parametrize("method", METHODS)
def test_one_turn_whose_reward_is_a_functions_is_bit_equal_to_the_run_with_that_function(started, tmp_path, method):
    (tmp_path / "reward.py").write_text(REWARD)
    (tmp_path / "one.py").write_text(ONE_TURN)
    rule = {
        "kind": "python",
        "file": str(tmp_path / "reward.py"),
        "sha256": hashlib.sha256(REWARD.encode()).hexdigest(),
    }
    more = {"reward_weights": [0.0]} if method == "ppo" else {}
    with_function = started(method, tmp_path, rules=[rule], **more)
    with_environment = started(method, tmp_path, environment=of_file(tmp_path / "one.py", max_turns=1), **more)
    wanted, given = ran(with_function), ran(with_environment)
    assert without_names(given) == without_names(wanted)
    assert given[1]["reward_environment"] == wanted[1]["reward_python"]
    assert given[1]["turns"] == given[1]["ended_by_environment"] == 1
    weights = final_weights(with_environment)
    assert all(torch.equal(weights[name], tensor) for name, tensor in final_weights(with_function).items())


@pytest.mark.parametrize("method", [*METHODS, "cispo", "distillation"])
def test_the_tokens_that_were_sampled_over_all_turns_are_those_that_are_learned(started, method):
    more = {"environment": environment("asked", max_turns=3, weight=0.0)} if method == "distillation" else {}
    stage = started(method, **more)
    metrics = ran(stage)
    sampled = {step: values for step, values in metrics.items() if "turns" in values}
    assert sampled
    for values in sampled.values():
        # The log-probs of training are those of the sampler, token by token, also behind an observation.
        assert values["sampler_difference_max"] < 1e-4
        assert 1 < values["turns"] <= 3
        assert values["environment_tokens"] > 0
        assert 0 <= values["ended_by_environment"] <= 1
    answers = [answer for sampled in recorded(stage, "sampled") for answer in sampled.group.answers]
    several = [answer for answer in answers if len(answer.turns) > 1]
    assert several
    for answer in several:
        assert sum(turn.tokens for turn in answer.turns) == answer.tokens
        assert answer.turns[0].observation[0].content == "Again, 1."
        assert answer.sources["environment"] == pytest.approx(sum(turn.reward for turn in answer.turns))
        assert answer.ended_by_environment == ("e" in answer.text)
    rewards = [values["reward_turn_1"] for values in sampled.values()]
    assert all(0 <= reward <= 1 for reward in rewards)


def test_a_run_that_is_killed_resumes_bit_for_bit(started):
    draw = random.Random(3)
    config = {"max_steps": 6, "checkpoint_every": 1, "minibatches": 2, "method": "rloo"}
    plain, stopped = started(**config), started(**config)
    metrics = metrics_of(forked(plain, 1, None, draw))
    forked(stopped, 1, 4, draw)
    assert metrics_of(forked(stopped, 2, None, draw)) == metrics
    weights = weights_of(stopped, "model")
    assert all(torch.equal(tensor, weights[name]) for name, tensor in weights_of(plain, "model").items())


@pytest.mark.long
def test_two_processes_ask_the_environment_once_and_learn_the_same(started):
    one, two = started(max_steps=2), started(max_steps=2)
    metrics = ran(one)
    status, events, err = run_ranks(two)
    assert status == 0, err
    for step, values in metrics_of(events).items():
        assert values["turns"] == metrics[step]["turns"]
        assert values["reward"] == pytest.approx(metrics[step]["reward"])
        assert values["loss"] == pytest.approx(metrics[step]["loss"], abs=1e-5)


def test_a_rewarded_habit_becomes_likelier_over_turns(started):
    metrics = ran(started("grpo", max_steps=24, batch=8, answers=4, kl_weight=0.0))
    first, last = (np.mean([metrics[step]["reward"] for step in steps]) for steps in (range(1, 5), range(21, 25)))
    assert last > first + 0.4


def test_an_environment_that_fails_fails_the_run_by_name(started, tmp_path):
    (tmp_path / "bad.py").write_text(ONE_TURN.replace("return", "return [][0] or"))
    with pytest.raises(EnvironmentFailed, match=r"IndexError: .*on the answer"):
        ran(started(folder=tmp_path, environment=of_file(tmp_path / "bad.py")))


def test_an_environment_is_a_source_of_rewards_from_an_operators_folder():
    def config(**more):
        return needed_method("rloo").config.model_validate({"method": "rloo", **more})

    assert config(environment=environment("asked")).rewards_outside
    assert config(environment=environment("asked")).input_fault([]) is None
    assert not config(rules=[{"kind": "regex", "pattern": "s"}]).rewards_outside
    assert "every reward has the weight 0" in config(environment=environment("asked", weight=0.0)).input_fault([])
    assert "nothing gives the answers a reward" in config().input_fault([])


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"staleness": 1, "engine": "vllm"}, "staleness must be 0"),
        ({"overlong_tokens": 2, "max_new_tokens": 6}, "are of single answers"),
    ],
)
def test_settings_that_do_not_fit_an_environment_are_refused(more, fault):
    with pytest.raises(ValidationError, match=fault):
        needed_method("rloo").config.model_validate({"method": "rloo", "environment": environment("asked"), **more})


@pytest.fixture(scope="module")
def asked_server():
    with openenv_server(FOLDER / "asked.py") as server:
        yield server


@pytest.fixture(scope="module")
def with_server(started, asked_server):
    """with_server(**config) -> a stage that asks the environment `asked` of a server."""

    def start(**config) -> Stage:
        named = {
            "kind": "openenv",
            "url": asked_server.url,
            "action_field": "message",
            "observation_field": "text",
            "begin": "prompt",
            "max_turns": 3,
        }
        stage = started(environment=named, **config)
        access = {"allowed_private": "127.0.0.1"}
        stage.spec = stage.spec.model_copy(update={"reward_access": RewardAccess.model_validate(access)})
        return stage

    return start


def test_an_environment_behind_a_server_is_learned_from_as_its_file_is(started, with_server):
    from_file, from_server = started("grpo"), with_server(method="grpo")
    wanted, given = ran(from_file), ran(from_server)
    assert given == wanted
    assert given[1]["turns"] > 1
    weights = final_weights(from_server)
    assert all(torch.equal(weights[name], tensor) for name, tensor in final_weights(from_file).items())


def test_a_run_that_is_killed_between_the_turns_of_a_server_resumes_bit_for_bit(with_server):
    draw = random.Random(5)
    config = {"max_steps": 5, "checkpoint_every": 1, "method": "rloo"}
    plain, stopped = with_server(**config), with_server(**config)
    metrics = metrics_of(forked(plain, 1, None, draw))
    forked(stopped, 1, 3, draw)
    assert metrics_of(forked(stopped, 2, None, draw)) == metrics
    weights = weights_of(stopped, "model")
    assert all(torch.equal(tensor, weights[name]) for name, tensor in weights_of(plain, "model").items())

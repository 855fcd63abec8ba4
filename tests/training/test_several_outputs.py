"""A run that trains several models at once saves each of them, and resumes all of them."""

from __future__ import annotations

import random

import pytest
import torch
from running import forked, metrics_of, ran, run_process, torchrun, weights_of
from torch.testing import assert_close

from steerboard_contracts.models import ModelInfo
from steerboard_workers.stages.models.model_io import load_policy, load_reward_model


def of_output(stage, name: str):
    return stage.directory / "outputs" / name


def test_a_policy_and_its_critic_come_out_as_two_models(make_toy):
    """Each by its role, from its own start, and each learns: the critic what it is asked for."""
    stage = make_toy(method="toy_critic", max_steps=15, lr=3e-3)
    steps = ran(stage)
    assert steps[15]["value_loss"] < 0.2 < 0.8 < steps[1]["value_loss"]
    assert steps[15]["loss"] < steps[1]["loss"]
    assert load_policy(of_output(stage, "model"), device="cpu").info.role == "policy"
    critic = load_reward_model(of_output(stage, "critic"), device="cpu")
    assert (critic.info.role, critic.info.method) == ("critic", "toy_critic")
    info = ModelInfo.model_validate_json((of_output(stage, "critic") / "steerboard.json").read_text())
    assert info.lineage == {"parent": "m", "data": "d"}


def test_the_critic_starts_from_its_own_input_and_has_its_own_learning_rate(make_toy, other_model):
    """The critic stays what it was at rate 0; the policy learns all the same, as it does with a critic that learns."""
    still = make_toy({"critic": other_model}, method="toy_critic", critic_rate=0.0)
    ran(still)
    moving = make_toy({"critic": other_model}, method="toy_critic")
    ran(moving)
    start = {name: t for name, t in _tensors(other_model).items() if name != "lm_head.weight"}
    critic, moved = weights_of(still, "critic"), weights_of(moving, "critic")
    assert all(torch.equal(critic[name], tensor) for name, tensor in start.items())
    assert any(not torch.equal(moved[name], tensor) for name, tensor in start.items())
    info = ModelInfo.model_validate_json((of_output(still, "critic") / "steerboard.json").read_text())
    assert info.lineage["parent"] == "f"


def _tensors(folder):
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def test_both_resume_bit_for_bit(make_toy):
    config = {"method": "toy_critic", "max_steps": 12, "checkpoint_every": 3}
    plain, stage, draw = make_toy(**config), make_toy(**config), random.Random(3)
    events = forked(plain, 1, None, draw)
    forked(stage, 1, 5, draw)
    forked(stage, 2, 9, draw)
    last = forked(stage, 3, None, draw)
    assert any("resumed from step" in event.message for event in last if event.type == "log")
    assert metrics_of(last) == metrics_of(events)
    for output in ("model", "critic"):
        ours = weights_of(stage, output)
        assert all(torch.equal(tensor, ours[name]) for name, tensor in weights_of(plain, output).items())
    names = [output.name for event in last if event.type == "succeeded" for output in event.outputs]
    assert names == ["model", "critic"]


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["ddp", "zero3"])
def test_two_processes_train_both_as_one_does(make_toy, wide_model, toy_package, strategy):
    config = {"method": "toy_critic", "model": wide_model, "micro_batch": 2, "critic_rate": 0.5}
    one, two = make_toy(**config), make_toy(**config, strategy=strategy)
    ran(one)
    code, _, stderr = run_process(two, torchrun(2), **toy_package)
    assert code == 0, stderr[-3000:]
    for output in ("model", "critic"):
        for name, tensor in weights_of(one, output).items():
            assert_close(weights_of(two, output)[name], tensor, rtol=1e-3, atol=1e-4)

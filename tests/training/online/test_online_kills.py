"""kill -9 inside of each phase of a step, at a place that the seed draws: the run that resumes has the rollouts,
rewards and weights of one that no one killed, bit for bit.

Rewards are of a rule and of a reward model, from which the critic starts. STEERBOARD_TEST_SEEDS asks for another number
of seeds than 20.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from contextlib import contextmanager

import pytest
import torch
from running import forked, metrics_of, weights_of

from steerboard_contracts.stage.inputs import ModelInput
from steerboard_workers.phases import Phases
from steerboard_workers.stages.runtime import Stage

pytestmark = pytest.mark.long

PHASES = ("generate", "score", "reference", "update")
SEEDS = int(os.environ.get("STEERBOARD_TEST_SEEDS", "20"))
CONFIG = {
    "run": "train",
    "batch": 8,
    "answers": 2,
    "minibatches": 2,
    "epochs": 9,
    "max_steps": 10,
    "lr": 3e-3,
    "max_length": 96,
    "max_new_tokens": 6,
    "rules": [{"kind": "regex", "pattern": "s"}],
    "overlong_tokens": 3,
    "entropy_weight": 0.01,
    "refill": 2,
    "evaluate_rows": 4,
    "checkpoint_seconds": 0,
    "checkpoint_every": 3,
}


def dying_in(monkeypatch, phase: str, occurrence: int, seconds: float) -> None:
    """The process that enters the phase for the so-manieth time ends so many seconds later."""
    measure, entered = Phases.measure, []

    @contextmanager
    def measured(self, name):
        with measure(self, name) as peak:
            entered.extend([name] * (name == phase))
            if name == phase and len(entered) == occurrence:
                threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
            yield peak

    monkeypatch.setattr(Phases, "measure", measured)


@pytest.fixture
def survives(make_stage, base_model, reward_model, monkeypatch):
    """survives(seed, phases, outputs, **config): of runs with that config, each killed in one of these phases."""

    def check(seed: int, phases: tuple[str, ...], outputs: tuple[str, ...], **config) -> None:
        draw = random.Random(seed)
        given = ModelInput(name="reward", path=str(reward_model), content_hash="r")

        def scored() -> Stage:
            stage = make_stage({**CONFIG, "seed": seed, **config}, model=base_model)
            stage.spec = stage.spec.model_copy(update={"inputs": {**stage.spec.inputs, "reward": given}})
            return stage

        plain = scored()
        metrics = metrics_of(forked(plain, 1, None, draw))
        assert len(metrics) == 10
        for phase in phases:
            stage = scored()
            with monkeypatch.context() as patch:
                dying_in(patch, phase, draw.randint(2, 4), draw.uniform(0, 0.01))
                forked(stage, 1, None, draw, kills_itself=True)
            assert metrics_of(forked(stage, 2, None, draw)) == metrics, phase
            for output in outputs:
                weights, wanted = weights_of(stage, output), weights_of(plain, output)
                assert all(torch.equal(tensor, weights[name]) for name, tensor in wanted.items()), phase

    return check


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_run_that_is_killed_in_any_phase_resumes_bit_for_bit(survives, seed):
    survives(seed, (*PHASES, "value"), ("model", "critic"), method="ppo", critic_lr=3e-3, normalise_rewards=True)


@pytest.mark.parametrize("method", ["rloo", "reinforce_pp", "grpo", "gdpo"])
def test_a_run_without_a_critic_does_too(survives, method):
    survives(0, PHASES, ("model",), method=method, kl_weight=0.05)

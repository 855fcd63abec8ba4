"""Runs that learn from answers by the experts that sampled them."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from running import final_weights, forked, metrics_of, ran, run_ranks
from transformers import AutoConfig, AutoModelForCausalLM

from steerboard_contracts.engine import VllmOptions
from steerboard_contracts.errors import BadInput
from steerboard_contracts.methods import methods, needed_method
from steerboard_contracts.online.policy_gradient import PolicyGradientConfig
from steerboard_workers.alignment.modules import JointModule
from steerboard_workers.alignment.online.ahead import Ahead
from steerboard_workers.alignment.rollouts import Rollout
from steerboard_workers.engines.live.messages import Draw, Drawn
from steerboard_workers.engines.vllm import host
from steerboard_workers.engines.vllm.host import VllmHost
from steerboard_workers.stages.roles.rollout_unit import rollout_unit
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.experts import Experts
from steerboard_workers.stages.training.sampling.live_policy import Drawing, ModuleSampler
from steerboard_workers.stages.training.sampling.vllm_sampler import fill
from support.models.mixtures import FAMILIES, mixture_of
from support.models.tiny_shape import SHAPE

QUICK = {
    "run": "train",
    "method": "rloo",
    "rules": [{"kind": "regex", "pattern": "s"}],
    "batch": 6,
    "max_length": 96,
    "checkpoint_every": 0,
    "checkpoint_seconds": 0,
    "lr": 2e-3,
    "max_steps": 3,
    "max_new_tokens": 8,
    "answers": 4,
    "evaluate_rows": 4,
}
REPLAY = {**QUICK, "router_replay": True}
DIFFERS = "replayed_routes_differ"
SERVER = {"kind": "openenv", "url": "http://localhost:9", "action_field": "message"}
SPEC = needed_method("rloo")


@pytest.fixture(scope="module", params=FAMILIES)
def mixture(request, base_model, tmp_path_factory):
    return mixture_of(base_model, tmp_path_factory.mktemp(request.param) / "model", request.param, experts=8)


@pytest.fixture
def routed_otherwise(monkeypatch):
    """The sampler's routers are not those of the model in training: some of its tokens go to other experts."""
    begin = ModuleSampler.begin

    def drawn(self, answers, prompts, temperature):
        gates = [p for name, p in self._module.model.named_parameters() if name.endswith("mlp.gate.weight")]
        kept = [gate.detach().clone() for gate in gates]
        noise = torch.Generator().manual_seed(5)
        with torch.no_grad():
            for gate in gates:
                gate.add_(torch.randn(gate.shape, generator=noise) * 0.03 * gate.abs().mean())
            begin(self, answers, prompts, temperature)
            for gate, own in zip(gates, kept, strict=True):
                gate.copy_(own)

    monkeypatch.setattr(ModuleSampler, "begin", drawn)


def test_where_sampler_and_policy_choose_alike_nothing_changes(make_stage, mixture):
    plain, replayed = make_stage(QUICK, model=mixture), make_stage(REPLAY, model=mixture)
    expected, steps = ran(plain), ran(replayed)
    assert [values.pop(DIFFERS) for values in steps.values()] == [0, 0, 0]
    assert steps == expected
    weights = final_weights(plain)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in final_weights(replayed).items())


def test_a_sampler_that_routes_otherwise_is_nearer_by_its_routes(make_stage, mixture, routed_otherwise):
    one_step = {"max_steps": 1, "max_sampler_difference": 10}
    (without,) = ran(make_stage({**QUICK, **one_step}, model=mixture)).values()
    (replayed,) = ran(make_stage({**REPLAY, **one_step}, model=mixture)).values()
    assert 0 < replayed[DIFFERS] < 0.5
    assert DIFFERS not in without
    assert replayed["sampler_kl"] < without["sampler_kl"] / 3
    assert replayed["ratio_error"] <= 1e-5


def test_later_updates_of_a_sampling_keep_its_routes(make_stage, mixture):
    steps = ran(make_stage({**REPLAY, "updates": 3, "lr": 2e-2}, model=mixture))
    shares = [values[DIFFERS] for values in steps.values()]
    assert shares[0] == 0
    assert 0 < shares[1] < shares[2]
    assert steps[1]["ratio_error"] <= 1e-5


def test_a_critic_with_experts_of_its_own_chooses_itself(make_stage, mixture):
    (step,) = ran(make_stage({**REPLAY, "method": "ppo", "answers": 1, "max_steps": 1}, model=mixture)).values()
    assert step[DIFFERS] == 0
    assert f"critic_{DIFFERS}" not in step


@pytest.mark.long
def test_a_killed_run_resumes_bit_for_bit_with_the_routes_of_answers_ahead(make_stage, mixture):
    config = {**REPLAY, "max_steps": 6, "checkpoint_every": 2, "minibatches": 2}

    def stale() -> Stage:
        stage = make_stage(config, model=mixture)
        # Not by the field, which is for samplers apart alone.
        ahead = stage.spec.config.model_copy(update={"staleness": 1, "sampler_weight_cap": 2.0})
        return Stage(stage.directory, stage.spec.model_copy(update={"config": ahead}), stage._events)

    whole, stage, draw = stale(), stale(), random.Random(3)
    metrics = metrics_of(forked(whole, 1, None, draw))
    assert max(values[DIFFERS] for values in metrics.values()) > 0
    forked(stage, 1, 3, draw)
    assert metrics_of(forked(stage, 2, None, draw)) == metrics
    weights = final_weights(whole)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in final_weights(stage).items())


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["ddp", "zero2"])
def test_two_processes_replay_as_one_does(make_stage, mixture, strategy):
    config = {**REPLAY, "updates": 3, "lr": 5e-3, "batching": "padded"}
    expected = ran(make_stage(config, model=mixture))
    code, events, stderr = run_ranks(make_stage({**config, "strategy": strategy}, model=mixture))
    assert code == 0, stderr[-3000:]
    steps = metrics_of(events)
    assert expected[3][DIFFERS] > 0
    for step, values in expected.items():
        assert steps[step]["loss"] == pytest.approx(values["loss"], rel=1e-2, abs=1e-3)
        assert steps[step]["grad_norm"] == pytest.approx(values["grad_norm"], rel=1e-2)
        assert steps[step][DIFFERS] == pytest.approx(values[DIFFERS], abs=0.01)


def test_rollout_engines_apart_return_routes(make_stage, mixture):
    stage = make_stage({**REPLAY, "placement": {"rollout": 1}}, model=mixture)
    unit = rollout_unit(stage, stage.spec.config, {}, 96)
    drawn = unit.draw(Draw([[5, 6, 7], [5, 6, 7], [8, 9]], [4, 2, 3], [1, 2, 3], 1.0, []))
    layers = AutoConfig.from_pretrained(mixture).num_hidden_layers
    lengths = [len(prompt) + len(ids) - 1 for prompt, ids in zip(([0] * 3, [0] * 3, [0] * 2), drawn.ids, strict=True)]
    assert [routes.shape for routes in drawn.routes] == [(length, layers, 2) for length in lengths]


def test_answers_ahead_keep_their_routes():
    routes = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    rollout = Rollout(0, 0, np.arange(2, dtype=np.int32), np.zeros(2, np.float32), "a", True, routes=routes)
    ahead = Ahead()
    ahead.begin(type("Policy", (), {"finish": lambda self, begun: begun})(), [[rollout]], 7, 4)
    restored = Ahead()
    restored.restore(ahead.state())
    ((back,),) = restored.take(7)[0]
    assert np.array_equal(back.routes, routes)


def test_what_an_engine_sends_reaches_the_answers():
    answers = [Drawing(0, n, 4, 0) for n in range(2)]
    routes = [np.full((3, 1, 2), n, dtype=np.uint8) for n in range(2)]
    fill(answers, Drawn([[5, 6], [7, 8]], [[0.0, 0.0]] * 2, routes), [6])
    assert [int(answer.routes[0, 0, 0]) for answer in answers] == [0, 1]
    fill(answers[:1], Drawn([[5]], [[0.0]]), [6])
    assert answers[0].ids == [5]


def test_a_model_without_experts_has_nothing_to_replay(make_stage, base_model):
    with pytest.raises(BadInput, match="router_replay is set, and LlamaForCausalLM has no routers") as refused:
        ran(make_stage(REPLAY, model=base_model))
    assert refused.value.code == "no_router"


def test_a_family_whose_gate_is_not_known_is_refused_by_name():
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model("phimoe", **SHAPE, num_local_experts=4))
    config = SPEC.config(method="rloo", router_replay=True)
    with pytest.raises(BadInput, match=r"PhimoeForCausalLM.*is not known") as refused:
        Experts({JointModule.MAIN: model}, config, None)
    assert refused.value.code == "routes_not_replayed"
    assert "Mixtral" in refused.value.hint


def test_vllm_on_a_cpu_gives_no_routes(tmp_path, monkeypatch):
    monkeypatch.setattr(host.os, "environ", dict(os.environ))
    about = {"task": "generate", "dtype": "float32", "window": 96, "sequences": 4, "give_up": lambda error: None}
    with pytest.raises(BadInput, match="`router_replay` with vLLM needs a GPU") as refused:
        VllmHost(tmp_path, options=VllmOptions(), device="cpu", live=True, routes=True, **about)
    assert refused.value.code == "engine_refused"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"engine": "vllm", "vllm": {"prefix_caching": False}}, "router_replay needs vllm.prefix_caching"),
        ({"environment": {**SERVER, "max_turns": 2}}, "router_replay is for answers of one turn"),
    ],
)
def test_what_cannot_be_replayed_exactly_is_refused(fields, words):
    with pytest.raises(ValidationError, match=words):
        SPEC.config(method="rloo", router_replay=True, **fields)


def test_an_environment_of_one_turn_is_possible():
    assert SPEC.config(method="rloo", router_replay=True, environment={**SERVER, "max_turns": 1}).replays_routes


def test_all_methods_of_policy_gradients_have_the_setting_and_none_replays_by_default():
    configs = [spec.config for spec in methods().values() if issubclass(spec.config, PolicyGradientConfig)]
    assert configs
    assert not any(config.model_fields["router_replay"].default for config in configs)

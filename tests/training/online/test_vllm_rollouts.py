"""Answers sampled by vLLM from the weights of each step, as the model in training would give them."""

from __future__ import annotations

import json
import os
import shutil
import signal

import pytest
import torch
from running import ran, recorded, run_process, torchrun

from steerboard.platform.processes import vllm
from steerboard_contracts.engine import VllmOptions
from steerboard_contracts.errors import EngineMissing
from steerboard_contracts.stage.spec import STAGE_FILE, EngineProcess
from steerboard_workers.engines.live.messages import Draw, Drawn, Start
from steerboard_workers.engines.live.process import LiveEngine, write_config
from steerboard_workers.engines.shared_weights import SharedWeights
from steerboard_workers.engines.vllm.watchdog import EngineFailed
from steerboard_workers.stages.models.model_io import load_policy
from steerboard_workers.stages.runtime import Stage
from support.environments import FOLDER, environment
from support.models.mixtures import FAMILIES, mixture_of
from support.models.vllm_engine import PYTHON, needs_vllm

NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="copies from a GPU")
long = [needs_vllm, pytest.mark.long]
QUICK = {
    "run": "train",
    "method": "rloo",
    "rules": [{"kind": "regex", "pattern": "s"}],
    "batch": 6,
    "max_length": 96,
    "checkpoint_every": 0,
    "lr": 1e-2,
    "max_steps": 4,
    "max_new_tokens": 12,
    "answers": 4,
    "evaluate_rows": 4,
    "temperature": 0.9,
    "engine": "vllm",
    "vllm": {"eager": True},
}


def engine_process(folder) -> EngineProcess:
    assert PYTHON is not None
    return EngineProcess(python=str(PYTHON), variables={**vllm.variables(PYTHON, folder), "OMP_NUM_THREADS": "1"})


@pytest.fixture
def started(make_stage, wide_model, tmp_path):
    def start(model=wide_model, device="cpu", **config) -> Stage:
        stage = make_stage({**QUICK, **config}, model=model)
        spec = stage.spec.model_copy(update={"vllm": engine_process(tmp_path), "device": device})
        (stage.directory / STAGE_FILE).write_text(spec.model_dump_json())
        return Stage(stage.directory, spec, stage._events)

    return start


class TestTraining:
    pytestmark = long

    @pytest.mark.parametrize("config", [{}, {"lora": {"rank": 4}, "lr": 5e-2}], ids=["whole", "lora"])
    def test_every_step_is_sampled_from_its_own_weights(self, started, config):
        stage = started(**config)
        metrics = ran(stage)
        assert len(metrics) == 4
        for values in metrics.values():
            # A step of this size moves log-probs by hundredths, and vLLM's are of the weights after it.
            assert values["sampler_difference_max"] < 1e-3
            assert values["ratio_error"] < 1e-4
        assert metrics[4]["kl"] > 0.01
        assert {"sync", "generate", "update"} <= set(stage.phases.so_far())

    def test_ahead_it_samples_while_the_policy_learns(self, started):
        metrics = ran(started(staleness=1, sampler_weight_cap=2, lr=1e-4, evaluate_every=2))
        assert metrics[1]["sampler_difference_max"] < 1e-3
        assert all(1e-3 < metrics[step]["sampler_difference_max"] < 0.5 for step in (2, 3, 4))
        assert all(values["ratio_error"] < 1e-4 for values in metrics.values())

    def test_compiled_it_takes_new_weights_too(self, started):
        metrics = ran(started(vllm={"eager": False}, max_steps=2))
        assert all(values["sampler_difference_max"] < 1e-3 for values in metrics.values())

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="vLLM returns routes on a GPU only")
    @pytest.mark.parametrize("family", FAMILIES)
    def test_on_a_gpu_its_routes_are_replayed(self, started, wide_model, tmp_path, family):
        mixture = mixture_of(wide_model, tmp_path / "mixture", family, experts=8)
        run = {"model": mixture, "device": "cuda", "precision": "bf16", "max_steps": 2, "lr": 1e-4}
        replayed, without = ran(started(**run, router_replay=True)), ran(started(**run))
        for step, values in replayed.items():
            assert values["replayed_routes_differ"] < 0.1
            assert values["sampler_kl"] <= without[step]["sampler_kl"]

    def test_on_a_cpu_it_returns_no_routes(self, started, wide_model, tmp_path):
        mixture = mixture_of(wide_model, tmp_path / "mixture", "qwen3_moe")
        with pytest.raises(EngineFailed, match="`router_replay` with vLLM needs a GPU") as caught:
            ran(started(model=mixture, router_replay=True))
        assert caught.value.code == "engine_refused"

    @pytest.mark.parametrize("strategy", ["ddp", "zero3"])
    def test_two_processes_sample_by_an_engine_each(self, started, strategy):
        code, events, log = run_process(started(max_steps=2, strategy=strategy), torchrun(2))
        assert code == 0, log[-3000:]
        steps = [event.values for event in events if event.type == "metrics"]
        assert steps
        assert all(values["sampler_difference_max"] < 1e-3 for values in steps)

    @pytest.mark.parametrize("method", ["rloo", "grpo"])
    def test_turns_of_an_environment_are_learned_by_the_ids_that_vllm_drew(
        self, make_stage, wide_model, tmp_path, method
    ):
        model = tmp_path / "ending"
        shutil.copytree(wide_model, model)
        ends = [json.loads((model / "config.json").read_text())["eos_token_id"], *range(50, 150)]
        (model / "generation_config.json").write_text(json.dumps({"eos_token_id": ends}))
        config = {key: value for key, value in QUICK.items() if key != "rules"}
        config |= {"method": method, "environment": environment("asked", max_turns=3), "max_new_tokens": 6}
        access = {"folders": {"roots": [str(FOLDER)]}}
        stage = make_stage(config, model=model, reward_access=access)
        stage.spec = stage.spec.model_copy(update={"vllm": engine_process(tmp_path)})
        metrics = ran(stage)
        assert len(metrics) == 4
        for values in metrics.values():
            assert values["turns"] > 1.5
            assert values["sampler_difference_max"] < 1e-3
            assert values["ratio_error"] < 1e-4

    def test_without_vllm_the_run_fails_at_once(self, started):
        stage = started()
        stage.spec.vllm = None
        with pytest.raises(EngineMissing, match="vLLM is not installed"):
            ran(stage)
        assert not recorded(stage, "metrics")


def opened(folder, model) -> LiveEngine:
    """An engine of the model's architecture, without its weights."""
    write_config(folder, json.loads((model / "config.json").read_text()))
    options = VllmOptions(eager=True).model_dump()
    return LiveEngine(engine_process(folder), Start(str(folder), "float32", 96, 8, options, "cpu"))


def drawn_by(engine: LiveEngine, asked: Draw) -> Drawn:
    engine.begin(asked)
    return engine.drawn()


class TestEngine:
    pytestmark = long

    def test_its_greedy_answers_follow_the_weights(self, wide_model, tmp_path):
        engine = opened(tmp_path, wide_model)
        policy = load_policy(wide_model, "fp32", "cpu").model
        prompts = [[5, 6, 7, 8], [9, 10, 11], [5, 6, 7, 8, 12, 13]]
        asked = Draw(prompts, [8, 8, 3], [0, 0, 0], 0.0, [0])
        for _ in range(2):
            with torch.no_grad():
                for parameter in policy.parameters():
                    if parameter.dim() == 2:
                        parameter.normal_(std=0.3)
            engine.update(policy.state_dict().items)
            drawn = drawn_by(engine, asked)
            for prompt, ids, log_probs in zip(prompts, drawn.ids, drawn.log_probs, strict=True):
                with torch.no_grad():
                    logits = policy(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1].float()
                assert ids == logits.argmax(-1).tolist()
                expected = logits.log_softmax(-1).gather(1, torch.tensor(ids)[:, None]).squeeze(1)
                assert log_probs == pytest.approx(expected.tolist(), abs=1e-3)
        engine.close()
        assert engine._process.returncode == 0

    def test_what_it_still_draws_when_it_is_closed_is_lost(self, wide_model, tmp_path):
        engine = opened(tmp_path, wide_model)
        engine.begin(Draw([[5, 6]] * 64, [90] * 64, [0] * 64, 1.0, []))
        engine.close()
        assert engine._process.returncode == -signal.SIGKILL

    def test_one_that_is_killed_is_an_error_that_another_attempt_may_mend(self, wide_model, tmp_path):
        live = opened(tmp_path, wide_model)
        os.kill(live._process.pid, signal.SIGKILL)
        with pytest.raises(EngineFailed, match="ended with status -9") as caught:
            drawn_by(live, Draw([[5]], [2], [0], 1.0, [0]))
        assert caught.value.retryable

    def test_what_vllm_refuses_says_what_to_do(self, base_model, tmp_path):
        with pytest.raises(EngineFailed) as caught:  # its heads are too small for vLLM's kernels
            drawn_by(opened(tmp_path, base_model), Draw([[5]], [2], [0], 1.0, [0]))
        assert caught.value.code == "engine_refused"
        assert not caught.value.retryable


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NEEDS_GPU)])
def test_weights_are_read_as_they_were_written_last_and_by_any_process(device):
    made = {"a.weight": torch.randn(3, 5), "b": torch.arange(4), "c": torch.randn(7).bfloat16()}
    weights = {name: tensor.to(device) for name, tensor in made.items()}
    shared = SharedWeights()
    first = shared.write(weights.items, torch.float32)
    weights["a.weight"] += 1
    layout = shared.write(weights.items, torch.float32)
    assert layout == first
    tensors = dict(layout.read())
    assert {name: tensor.dtype for name, tensor in tensors.items()} == {
        "a.weight": torch.float32,
        "b": torch.int64,
        "c": torch.float32,
    }
    for name, tensor in weights.items():
        assert torch.equal(tensors[name], tensor.to("cpu", tensors[name].dtype))
    tensors["a.weight"].zero_()
    assert dict(layout.read())["a.weight"].count_nonzero(), "a reader changed the memory of others"

"""Methods that sample from the weights in training, by the one of docs/methods.md: its reward rises, and kill -9, the
number of processes and the batching change no answer."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState
from page_methods import install_best_of_two
from pydantic import ValidationError
from running import final_weights, forked, metrics_of, run_process, torchrun

from steerboard_contracts import methods
from steerboard_contracts.errors import BadInput, OutOfMemory
from steerboard_contracts.fields import EXECUTION_FIELDS
from steerboard_contracts.methods.sft import SftConfig
from steerboard_workers.alignment.attention import PADDING_FREE
from steerboard_workers.alignment.batches.batch_source import (
    BadSource,
    BatchSource,
    ListSource,
    check_state,
    pack_examples,
    unpack_examples,
)
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.methods import training_of
from steerboard_workers.alignment.modules import PolicyModule
from steerboard_workers.engines.decoding import Decoder
from steerboard_workers.engines.sampling import gumbel_noise, stream_key
from steerboard_workers.phases import Phases
from steerboard_workers.stages import train
from steerboard_workers.stages.distributed.choice import strategy_of
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.data import load_data
from steerboard_workers.stages.training.passes import ForwardPasses
from steerboard_workers.stages.training.sampling import live_policy
from steerboard_workers.stages.training.sampling.live_policy import SampledPolicy, sampling
from steerboard_workers.stages.training.setup import open_model

COMMON = {"run": "train", "batch": 16, "epochs": 6, "lr": 1e-2, "max_length": 96, "checkpoint_seconds": 0}
CONFIG = {
    **COMMON,
    "method": "best_of_two",
    "max_steps": 24,
    "max_new_tokens": 12,
    "temperature": 0.8,
    "checkpoint_every": 4,
    "evaluate_every": 12,
    "evaluate_rows": 4,
}
LORA = {"rank": 4, "dropout": 0.3}


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    return install_best_of_two(tmp_path_factory.mktemp("best-of-two"))


@pytest.fixture(scope="module")
def started(make_stage, base_model, installed):
    """started(**config) -> a stage that trains by the page's method."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(installed))
        methods._loaded.cache_clear()

        def start(**config) -> Stage:
            # The union of all configs is made when the process starts, so the file is written for later ones.
            stage = make_stage({**COMMON, "method": "sft"}, model=base_model)
            file = stage.directory / "stage.json"
            file.write_text(json.dumps(json.loads(file.read_text()) | {"config": {**CONFIG, **config}}))
            own = methods.needed_method(config.get("method", "best_of_two")).config.model_validate({**CONFIG, **config})
            return Stage(stage.directory, stage.spec.model_copy(update={"config": own}), stage._events)

        yield start
    methods._loaded.cache_clear()


@pytest.fixture(scope="module")
def undisturbed(started):
    return whole_run(started())


def whole_run(stage: Stage) -> tuple[dict, dict[str, torch.Tensor]]:
    return metrics_of(forked(stage, 1, None, random.Random(0))), final_weights(stage)


def test_the_reward_of_what_is_sampled_rises(undisturbed):
    metrics, _ = undisturbed
    rewards = [metrics[step]["reward"] for step in range(1, 25)]
    assert np.mean(rewards[-4:]) > 2 * np.mean(rewards[:4]), rewards
    assert metrics[24]["eval_reward"] > 2 * rewards[0]


def test_phases_of_a_step_are_among_its_metrics(started):
    (event,) = [e for e in forked(started(max_steps=1), 1, None, random.Random(0)) if e.type == "metrics"]
    values = event.values
    assert {"generate_seconds", "score_seconds", "update_seconds"} <= values.keys()
    assert all(values[f"{phase}_seconds"] > 0 for phase in ("generate", "score", "update"))
    assert values["generate_tokens"] == values["score_tokens"] > 16
    assert values["update_tokens"] == values["tokens"]


@pytest.mark.parametrize(
    ("method", "kill_after"),
    [("best_of_two", 5), pytest.param("best_of_two", 11, marks=pytest.mark.long), ("two_steps", 10)],
)
def test_a_killed_run_that_samples_resumes_bit_for_bit(started, undisturbed, method, kill_after):
    """The source's state is part of the checkpoint: a running mean, and answers that a later step learns."""
    config = {} if method == "best_of_two" else {"method": method, "checkpoint_every": 3, "max_steps": 12}
    stage, draw = started(**config), random.Random(kill_after)
    forked(stage, 1, kill_after, draw)
    last = forked(stage, 2, None, draw)
    assert any(e.type == "log" and "resumed from step" in e.message for e in last)
    metrics, weights = undisturbed if method == "best_of_two" else whole_run(started(**config))
    assert metrics_of(last) == metrics
    assert all(torch.equal(tensor, final_weights(stage)[name]) for name, tensor in weights.items())


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["ddp", "zero2"])
def test_two_processes_sample_and_train_as_one(started, installed, strategy):
    results = []
    for launcher, config in ((None, {}), (torchrun(2), {"strategy": strategy})):
        stage = started(max_steps=6, lr=2e-3, micro_batch=3, **config)
        code, events, stderr = run_process(stage, launcher, PYTHONPATH=str(installed))
        assert code == 0, stderr[-3000:]
        results.append((metrics_of(events), final_weights(stage)))
    (one, weights), (two, others) = results
    assert sorted(two) == list(range(1, 7))
    for step, values in one.items():
        for name in ("reward", "generate_tokens", "tokens"):
            assert two[step][name] == values[name]
        assert two[step]["loss"] == pytest.approx(values["loss"], rel=1e-5)
    for name, tensor in weights.items():
        torch.testing.assert_close(others[name], tensor, rtol=1e-3, atol=5e-5)


@pytest.mark.long
def test_processes_with_different_batches_fail_at_once(started, installed):
    stage = started(method="ranked")
    code, events, stderr = run_process(stage, torchrun(2), PYTHONPATH=str(installed))
    assert code != 0
    failed = next(event for event in events if event.type == "failed")
    assert (failed.code, "different batches at step 1" in failed.detail) == ("bad_batch_source", True), stderr[-2000:]


# -- the sampler ------------------------------------------------------------------------------------------------------


class Live:
    """A module in training, and its sampler."""

    def __init__(self, stage: Stage, **config) -> None:
        AcceleratorState._reset_state(reset_partial_state=True)
        config = stage.spec.config.model_copy(update=config)
        self.sharing = strategy_of(config, "cpu")
        self.start = open_model(stage.model_path("model"), config)
        self.module = self.start.module()
        self.sharing.share(self.module)
        self.sharing.module.train()
        self.phases = Phases()
        self.policy = SampledPolicy(self.module, self.sharing, self.start.renderer, config, self.phases)
        self.prompts = load_data(stage, training_of(config), self.start.renderer).train[:6]


def ids_of(groups) -> list[list[list[int]]]:
    return [[rollout.ids.tolist() for rollout in group] for group in groups]


def test_log_probs_and_draws_are_those_of_the_module_at_the_sampling_temperature(started):
    live = Live(started(), lora=None)
    assert isinstance(live.module, PolicyModule)
    # A fifth of the vocabulary ends an answer, as the text of a trained model would.
    ends = {*live.start.renderer.stop_ids, *range(300, 400, 5)}
    live.module.model.generation_config.eos_token_id = sorted(ends)
    groups = live.policy.sample(3, live.prompts, answers=2, temperature=0.7, max_new_tokens=9)
    assert {rollout.finished for group in groups for rollout in group} == {True, False}
    for prompt, group in zip(live.prompts, groups, strict=True):
        for rollout in group:
            whole = torch.from_numpy(np.concatenate([prompt.prompt, rollout.ids]).astype(np.int64))[None]
            with torch.no_grad():
                logits = live.module.model(whole).logits[0, len(prompt.prompt) - 1 : -1].float() / 0.7
            expected = logits.log_softmax(-1).gather(1, torch.from_numpy(rollout.ids.astype(np.int64))[:, None])[:, 0]
            torch.testing.assert_close(torch.from_numpy(rollout.log_probs), expected, rtol=1e-4, atol=1e-4)
            places = torch.arange(len(rollout.ids))
            keys = torch.full_like(places, stream_key(0, 3, prompt.row, rollout.n))
            drawn = (logits + gumbel_noise(keys, places, logits.shape[1])).argmax(-1)
            assert drawn.tolist() == rollout.ids.tolist()
            assert rollout.finished == (rollout.ids[-1] in ends)
            assert rollout.finished or len(rollout.ids) == 9
            assert rollout.text == live.start.renderer.response_text(
                rollout.ids[:-1] if rollout.finished else rollout.ids
            )
    # As the training's own passes have them at that temperature.
    live.module.temperature = 0.7
    passes = ForwardPasses(live.sharing)
    passes.read_from(Batcher("packed", "labels", 256, live.start.tokenizer.pad_token_id))
    learned = [
        replace(prompt, responses=tuple(rollout.ids for rollout in group))
        for prompt, group in zip(live.prompts, groups, strict=True)
    ]
    for group, labels in zip(groups, passes.per_label(learned), strict=True):
        for rollout, log_probs in zip(group, labels, strict=True):
            np.testing.assert_allclose(log_probs, rollout.log_probs, rtol=1e-3, atol=1e-3)
    assert live.phases.take()["generate_tokens"] == sum(len(rollout.ids) for group in groups for rollout in group)


def test_neither_batching_nor_dropout_nor_a_repeated_row_changes_an_answer(started, monkeypatch):
    stage = started()
    live = Live(stage, lora=SftConfig(method="sft", lora=LORA).lora)
    given = {"answers": 3, "max_new_tokens": 6}
    together = ids_of(live.policy.sample(1, live.prompts, **given))
    monkeypatch.setattr(live_policy, "SAMPLE_BATCH", 2)
    live.policy._sampler = None
    assert ids_of(live.policy.sample(1, live.prompts[::-1], **given))[::-1] == together
    assert ids_of(live.policy.sample(2, live.prompts, **given)) != together
    twice = ids_of(live.policy.sample(1, [live.prompts[0], *live.prompts[:2]], **given))
    assert [twice[0], twice[2]] == together[:2]
    assert len({tuple(ids) for ids in twice[0] + twice[1]}) == 6


def test_sampling_leaves_the_module_as_training_had_it_even_after_an_error(started):
    live = Live(started(), gradient_checkpointing=True)
    model = live.module.model
    own = model.config._attn_implementation
    model.set_attn_implementation(PADDING_FREE)
    model.config.use_cache = False
    live.module.model.lm_head.eval()
    before = [part.training for part in live.module.modules()]
    seen = []

    def fail() -> None:
        with sampling(live.module):
            seen.extend([live.module.training, model.config._attn_implementation, model.config.use_cache])
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert seen == [False, own, True]
    assert (model.config._attn_implementation, model.config.use_cache) == (PADDING_FREE, False)
    assert [part.training for part in live.module.modules()] == before
    plain = ids_of(live.policy.sample(0, live.prompts, max_new_tokens=4))
    model.set_attn_implementation(own)
    assert ids_of(live.policy.sample(0, live.prompts, max_new_tokens=4)) == plain
    assert all(p.grad is None for p in model.parameters())


def test_sampling_that_does_not_fit_is_said_to_need_a_smaller_sample_batch(started, monkeypatch):
    """The advice is not a smaller training step, as it is for a step that does not fit."""

    def full(*_) -> None:
        raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")

    AcceleratorState._reset_state(reset_partial_state=True)
    monkeypatch.setattr(Decoder, "run", full)
    with pytest.raises(OutOfMemory, match="Sampling 10 answers together") as refused:
        train.run(started(sample_batch=10))
    assert refused.value.extra["fix"].changes == {"sample_batch": 5}
    assert "sample_batch" in EXECUTION_FIELDS


def test_zero3_is_refused_before_the_launch(started):
    with pytest.raises(ValidationError, match="needs engine vllm, engines apart"):
        started(strategy="zero3")
    live = Live(started())
    live.policy._config = live.policy._config.model_copy(update={"strategy": "zero3"})
    with pytest.raises(BadInput, match="zero3"):
        live.policy.sample(0, live.prompts)


# -- the contract of sources ------------------------------------------------------------------------------------------


def example(row: int, **changes) -> Example:
    fields = {"prompt": np.arange(3, dtype=np.int32), "responses": (np.arange(row + 2, dtype=np.int32),)}
    return Example(row, **(fields | changes))


def test_a_list_gives_its_order_and_its_largest_batches():
    examples = [example(row) for row in range(40)]
    source: BatchSource = ListSource(examples, [], SftConfig(method="sft", batch=8, epochs=1.5, seed=3))
    drawn = [[e.row for e in source.batch(step).examples] for step in range(source.steps)]
    assert (source.steps, sum(map(len, drawn))) == (8, 60)
    assert sorted(row for rows in drawn[:5] for row in rows) == list(range(40))
    assert [e.row for e in source.rehearsal()[0]] == list(range(39, 31, -1))
    assert Batcher("padded", "labels", 64, 0).cut(source.rehearsal()[0])[0][0][0].row == 39


def test_examples_come_back_from_a_state_as_they_were(tmp_path):
    given = [example(1, weight=0.25, prompt_supervised=np.array([False, True, False])), example(2, responses=())]
    state = {"buffer": pack_examples(given), "mean": 0.5, "name": None}
    check_state(state)
    torch.save(state, tmp_path / "state.pt")
    back = unpack_examples(torch.load(tmp_path / "state.pt", weights_only=True)["buffer"])
    for one, other in zip(given, back, strict=True):
        assert [type(getattr(other, name)) for name in Example.__slots__] == [
            type(getattr(one, name)) for name in Example.__slots__
        ]
        assert np.array_equal(one.prompt, other.prompt)
        assert [r.tolist() for r in one.responses] == [r.tolist() for r in other.responses]
        assert one.weight == other.weight
    with pytest.raises(BadSource, match=r"state\['a'\]\[1\] .* ndarray"):
        check_state({"a": [1, np.zeros(2)]})

"""Experts by grouped products and one after the other: the same run, and the frozen models are computed alike."""

from __future__ import annotations

import pytest
import torch
from accelerate.state import AcceleratorState
from running import ran, weights_of
from transformers import AutoModelForCausalLM

from steerboard_contracts.stage.inputs import ModelInput
from steerboard_contracts.stage.spec import STAGE_FILE
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.opened import open_given
from support.models.mixtures import FAMILIES, mixture_of

RUN = {"run": "train", "method": "dpo", "batch": 8, "max_steps": 3, "lr": 1e-3, "checkpoint_every": 0}


@pytest.fixture(scope="module", params=FAMILIES)
def mixture(request, base_model, tmp_path_factory):
    return mixture_of(base_model, tmp_path_factory.mktemp(request.param) / "model", request.param)


def with_reference(make_stage, mixture, kernels: str) -> Stage:
    stage = make_stage({**RUN, "expert_kernels": kernels}, model=mixture, data="preferences")
    given = {"reference": ModelInput(name="reference", path=str(mixture), content_hash="m")}
    spec = stage.spec.model_copy(update={"inputs": {**stage.spec.inputs, **given}})
    (stage.directory / STAGE_FILE).write_text(spec.model_dump_json())
    return Stage(stage.directory, spec, stage._events)


def test_both_ways_train_alike_from_where_the_policy_is_its_reference(make_stage, mixture):
    stages = {kernels: with_reference(make_stage, mixture, kernels) for kernels in ("grouped", "plain")}
    grouped, plain = (ran(stage) for stage in stages.values())
    for steps in (grouped, plain):
        assert steps[1]["loss"] == pytest.approx(0.693147, abs=1e-6)
    for step, values in grouped.items():
        assert plain[step]["loss"] == pytest.approx(values["loss"], rel=1e-4)
        assert plain[step]["router_aux_loss"] == pytest.approx(values["router_aux_loss"], rel=1e-4)
    weights = weights_of(stages["plain"])
    for name, tensor in weights_of(stages["grouped"]).items():
        torch.testing.assert_close(weights[name], tensor, rtol=1e-3, atol=1e-4)


def test_the_setting_is_of_this_run_and_not_of_the_model_that_it_saves(make_stage, mixture):
    AcceleratorState._reset_state(reset_partial_state=True)
    stage = with_reference(make_stage, mixture, "plain")
    assert open_given(stage).start.model.config._experts_implementation == "eager"
    ran(stage)
    saved = stage.directory / "outputs" / "model"
    assert "experts_implementation" not in (saved / "config.json").read_text()
    assert AutoModelForCausalLM.from_pretrained(saved).config._experts_implementation == "grouped_mm"


def test_under_autocast_grouped_products_are_in_the_dtype_of_their_weights(mixture):
    seen: dict[str, set[torch.dtype]] = {}
    for kernels in ("grouped_mm", "eager"):
        model = AutoModelForCausalLM.from_pretrained(mixture, dtype=torch.float32, experts_implementation=kernels)
        experts = model.model.layers[0].mlp.experts
        of_this = seen.setdefault(kernels, set())
        experts.act_fn.register_forward_hook(lambda _, __, out, of_this=of_this: of_this.add(out.dtype))
        with torch.autocast("cpu", torch.bfloat16):
            model(torch.arange(5, 15)[None])
    assert seen == {"grouped_mm": {torch.float32}, "eager": {torch.bfloat16}}

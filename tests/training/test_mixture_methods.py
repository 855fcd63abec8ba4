"""Every method trains a mixture of experts: Mixtral and Qwen 3 MoE, with the figures of their routers."""

from __future__ import annotations

import json
import math

import pytest
from running import data_of, ran
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from steerboard_contracts.methods import methods, needed_method
from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_contracts.stage.spec import STAGE_FILE
from steerboard_workers.stages.runtime import Stage
from support.models.mixtures import FAMILIES, mixture_of

QUICK = {"run": "train", "batch": 4, "epochs": 2, "max_steps": 2, "max_length": 96, "lr": 1e-3, "checkpoint_every": 0}
QUICK |= {"evaluate_rows": 2, "evaluate_every": 0, "router_aux_loss": 0.01}
SAMPLED = {"max_new_tokens": 4, "answers": 2, "max_skipped": 1.0}
RULES = [{"kind": "regex", "pattern": "s"}, {"kind": "regex", "pattern": "o"}]
ALWAYS = ("sft", "dpo", "reward_model", "ppo", "grpo")  # the others are in `make test-all`


@pytest.fixture(scope="module", params=FAMILIES)
def mixture(request, base_model, tmp_path_factory):
    return mixture_of(base_model, tmp_path_factory.mktemp(request.param) / "model", request.param)


def config_of(method: str) -> dict[str, object]:
    online = issubclass(needed_method(method).config, OnlineConfig)
    if not online:
        return {**QUICK, "method": method}
    settings = {**QUICK, **SAMPLED, "method": method}
    settings |= {} if method == "distillation" else {"rules": RULES if method == "gdpo" else RULES[:1]}
    return {name: value for name, value in settings.items() if name in needed_method(method).config.model_fields}


@pytest.mark.parametrize(
    "method", [pytest.param(name, marks=() if name in ALWAYS else pytest.mark.long) for name in sorted(methods())]
)
def test_each_method_trains_it_and_its_router(make_stage, mixture, method):
    stage = make_stage(
        config_of(method), model=mixture, data=data_of(method) if data_of(method) != "prompts" else "labelled"
    )
    given = {}
    for frozen in needed_method(method).frozen:
        if frozen.name in ("reference", "teacher"):
            given[frozen.name] = ModelInput(name=frozen.name, path=str(mixture), content_hash="f")
    spec = stage.spec.model_copy(update={"inputs": {**stage.spec.inputs, **given}})
    (stage.directory / STAGE_FILE).write_text(spec.model_dump_json())
    steps = ran(Stage(stage.directory, spec, stage._events))
    learned = [values for values in steps.values() if "loss" in values]
    assert learned
    for values in learned:
        assert math.isfinite(values["loss"])
        assert 1.9 <= values["router_aux_loss"] <= 4  # even loads give 2
        assert 0.25 <= values["experts_used_min"] <= values["experts_used"] <= 1
    if method == "ppo":
        assert all("critic_router_aux_loss" in values for values in learned)
    saved = stage.directory / "outputs" / "model"
    about = json.loads((saved / "steerboard.json").read_text())
    kind = AutoModelForSequenceClassification if about["role"] == "reward" else AutoModelForCausalLM
    _, report = kind.from_pretrained(saved, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    # Other engines, such as vLLM, read each expert's matrices by the names of a published checkpoint.
    written, published = (set(load_file(folder / "model.safetensors")) for folder in (saved, mixture))
    assert {name for name in written if ".experts." in name} == {name for name in published if ".experts." in name}
    assert len([name for name in written if ".experts.3." in name]) == 3 * 2  # of two layers

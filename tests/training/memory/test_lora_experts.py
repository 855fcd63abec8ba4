"""LoRA on the experts of a mixture: merged, unmerged, in peft and in plain matrices it is the same model."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from accelerate.state import AcceleratorState
from running import run_ranks
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM

from steerboard_contracts.errors import BadInput
from steerboard_contracts.lora import LoraConfig
from steerboard_contracts.methods.sft import SftConfig
from steerboard_workers.stages import train
from steerboard_workers.stages.models.adapters import add_lora, merge
from steerboard_workers.stages.models.merging import write_merged
from steerboard_workers.stages.models.model_io import load_policy
from steerboard_workers.stages.training.setup import open_model
from support.models.mixtures import FAMILIES, mixture_of
from support.models.tiny_shape import SHAPE

CONFIG = {"run": "train", "method": "sft", "batch": 8, "lr": 1e-2, "max_steps": 4, "max_length": 96}
CONFIG |= {"checkpoint_every": 0, "evaluate_every": 0}
LORA = {"targets": "experts", "rank": 3, "alpha": 6.0}
IDS = torch.arange(5, 25)[None]


@pytest.fixture(scope="module", params=FAMILIES)
def mixture(request, base_model, tmp_path_factory):
    return mixture_of(base_model, tmp_path_factory.mktemp(request.param) / "model", request.param)


def logits(model) -> torch.Tensor:
    with torch.inference_mode():
        return model(input_ids=IDS, use_cache=False).logits


def trained(make_stage, model, **more):
    AcceleratorState._reset_state(reset_partial_state=True)
    stage = make_stage({**CONFIG, **more}, model=model)
    return stage.directory / "outputs" / "model", train.run(stage).summary


def test_merged_unmerged_merged_later_and_in_peft_it_is_the_same_model(make_stage, mixture, tmp_path):
    whole, _ = trained(make_stage, mixture, lora={**LORA, "merge": True})
    adapter, summary = trained(make_stage, mixture, lora={**LORA, "merge": False})
    learned = logits(load_policy(whole, "fp32", "cpu").model)
    assert (learned - logits(load_policy(mixture, "fp32", "cpu").model)).abs().max() > 0.05, "it has learned nothing"
    assert_same = torch.testing.assert_close
    assert_same(logits(load_policy(adapter, "fp32", "cpu").model), learned, rtol=1e-4, atol=1e-4)
    write_merged(adapter, tmp_path / "later")
    assert_same(logits(load_policy(tmp_path / "later", "fp32", "cpu").model), learned, rtol=1e-4, atol=1e-4)
    import peft  # slow to import, and every process collects this

    base = AutoModelForCausalLM.from_pretrained(adapter / "base", dtype=torch.float32)
    assert_same(logits(peft.PeftModel.from_pretrained(base, adapter)), learned, rtol=1e-4, atol=1e-4)
    config = AutoConfig.from_pretrained(mixture)
    experts = 4 * 3 * (48 + 2 * 32 + 32 + 48)
    attention = 3 * (2 * 48 + 2 * (48 + config.num_key_value_heads * 24) + 2 * 48)
    assert summary["trainable_parameters"] == config.num_hidden_layers * (experts + attention)


def test_only_adapters_learn_and_each_experts_own_change_is_of_the_rank(make_stage, mixture):
    whole, _ = trained(make_stage, mixture, lora={**LORA, "merge": True})
    before, after = (
        AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).state_dict() for folder in (mixture, whole)
    )
    for name, tensor in after.items():
        change = tensor - before[name]
        if ".experts." in name:
            assert torch.linalg.matrix_rank(change, rtol=1e-3).tolist() == [3] * 4
        elif "gate" in name or "norm" in name or "embed" in name:
            assert not change.any(), name


def test_more_training_starts_from_the_merged_adapter(make_stage, mixture):
    adapter, _ = trained(make_stage, mixture, lora={**LORA, "merge": False})
    again, _ = trained(make_stage, adapter, max_steps=1, lr=1e-9)
    first, then = (logits(load_policy(folder, "fp32", "cpu").model) for folder in (adapter, again))
    torch.testing.assert_close(first, then, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("family", ["gpt_oss", "qwen2_moe", "phimoe"])
def test_experts_of_other_layouts_merge_too(family):
    """GPT-OSS has experts (E, in, out) with biases, and Qwen 2 a shared expert of linear layers next to them."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(family, **{**SHAPE, "vocab_size": 64, "pad_token_id": None})
    model = AutoModelForCausalLM.from_config(config).eval()
    add_lora(model, LoraConfig(**LORA), head=False, seed=0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".lora_B." in name:
                parameter.normal_(std=0.1)
    adapted = logits(model)
    merge(model)
    torch.testing.assert_close(logits(model), adapted, rtol=1e-4, atol=1e-4)
    assert not any("lora" in name or "base_layer" in name for name, _ in model.named_parameters())


def test_frozen_experts_that_came_in_bf16_stay_in_it_unless_adapters_are_added_to_them(mixture, tmp_path):
    folder = tmp_path / "bf16"
    shutil.copytree(mixture, folder)
    AutoModelForCausalLM.from_pretrained(mixture, dtype=torch.bfloat16).save_pretrained(folder)

    def dtypes(targets: str, start: Path = folder, precision: str = "bf16") -> set[torch.dtype]:
        lora = {**LORA, "targets": targets}
        model = open_model(start, SftConfig(method="sft", lora=lora, precision=precision)).model
        return {p.dtype for name, p in model.named_parameters() if ".experts." in name and ".lora_" not in name}

    assert dtypes("linear") == dtypes("attention") == {torch.bfloat16}
    assert dtypes("experts") == dtypes("linear", mixture) == dtypes("linear", precision="fp32") == {torch.float32}


@pytest.mark.parametrize("targets", ["linear", "experts"])
def test_in_bf16_it_learns_about_what_it_learns_in_fp32(make_stage, mixture, tmp_path, targets):
    folder = tmp_path / "bf16"
    shutil.copytree(mixture, folder)
    AutoModelForCausalLM.from_pretrained(mixture, dtype=torch.bfloat16).save_pretrained(folder)
    lora, losses = {**LORA, "targets": targets}, {}
    for precision in ("fp32", "bf16"):
        _, summary = trained(make_stage, folder, lora=lora, precision=precision)
        losses[precision] = summary["loss"]
    assert losses["bf16"] == pytest.approx(losses["fp32"], rel=0.03)


def test_what_has_no_such_experts_is_refused(make_stage, base_model):
    with pytest.raises(BadInput, match="it has no experts whose weights are one parameter") as refused:
        trained(make_stage, base_model, lora=LORA)
    assert refused.value.code == "no_lora_targets"
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model("glm4_moe", **{**SHAPE, "pad_token_id": None}))
    with pytest.raises(BadInput, match="peft adapts its experts in the place of layers"):
        add_lora(model, LoraConfig(**LORA), head=False, seed=0)


@pytest.mark.parametrize("other", [{"dora": True}, {"dropout": 0.1}, {"quantise": "nf4"}])
def test_what_peft_cannot_do_with_experts_is_refused_before_the_launch(other):
    with pytest.raises(ValueError, match=f"targets experts does not go with {next(iter(other))}"):
        LoraConfig(**LORA, **other)


def test_zero3_is_refused_before_the_launch():
    with pytest.raises(ValueError, match="needs strategy ddp or zero2"):
        SftConfig(method="sft", strategy="zero3", lora=LORA)


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["ddp", "zero2"])
def test_two_processes_adapt_experts_as_one_does(make_stage, wide_model, tmp_path, strategy):
    model = mixture_of(wide_model, tmp_path / "model", "qwen3_moe")
    one, _ = trained(make_stage, model, lora=LORA)
    two = make_stage({**CONFIG, "lora": LORA, "strategy": strategy}, model=model)
    code, _, stderr = run_ranks(two)
    assert code == 0, stderr[-3000:]
    expected = load_file(one / "model.safetensors")
    for name, tensor in load_file(two.directory / "outputs" / "model" / "model.safetensors").items():
        torch.testing.assert_close(tensor, expected[name], rtol=1e-3, atol=2e-4)

"""LoRA for every method: merged and unmerged are the same model, peft reads what we write, the reward head survives."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from accelerate.state import AcceleratorState
from running import data_of, metrics_of, recorded, run_forked, run_ranks, with_others
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard_contracts.errors import BadInput
from steerboard_contracts.methods.reward_model import RewardModelConfig
from steerboard_contracts.methods.sft import SftConfig
from steerboard_workers.engines.protocol import Request
from steerboard_workers.engines.transformers_engine import TransformersEngine
from steerboard_workers.stages import train
from steerboard_workers.stages.generate import GenerateConfig
from steerboard_workers.stages.models import adapters
from steerboard_workers.stages.models.model_io import load_policy, load_reward_model
from steerboard_workers.stages.models.model_saving import SavedModelDiffers
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training import setup
from steerboard_workers.stages.training.setup import open_model

CONFIG = {"run": "train", "batch": 8, "lr": 1e-2, "max_steps": 6, "max_length": 96, "weight_decay": 0.01}
LORA = {"rank": 4, "alpha": 8.0}
METHODS = ["sft", "mle_filter", "rwr", "decision_transformer", "reward_model", "dpo", "kto", "preference_model"]
IDS = torch.arange(5, 25)[None]


@pytest.fixture(scope="module")
def trained(make_stage, base_model):
    """Folder of a model trained with LoRA, once a method and way of saving and adapting."""
    known: dict[tuple[str, ...], Path] = {}

    def of(method: str, merge: bool, **lora: bool) -> Path:
        key = (method, str(merge), *lora)
        if key not in known:
            data = data_of(method)
            config = {**CONFIG, "method": method, "lora": {**LORA, **lora, "merge": merge}}
            stage = make_stage(config, model=base_model, data=data)
            train.run(stage)
            known[key] = stage.directory / "outputs" / "model"
        return known[key]

    return of


def logits(model) -> torch.Tensor:
    with torch.inference_mode():
        return model(input_ids=IDS, use_cache=False).logits


@pytest.mark.parametrize("method", with_others(METHODS))
def test_merged_and_unmerged_give_the_same_logits(trained, base_model, method):
    load = load_reward_model if method == "reward_model" else load_policy
    whole, adapter = (load(trained(method, merge), "fp32", "cpu") for merge in (True, False))
    torch.testing.assert_close(logits(whole.model), logits(adapter.model), rtol=1e-4, atol=1e-5)
    before = load(base_model, "fp32", "cpu") if method != "reward_model" else None
    if before is not None:
        assert (logits(before.model) - logits(whole.model)).abs().max() > 0.05, "it has learned nothing"
    assert whole.info.lora is None
    assert adapter.info.lora is not None
    assert adapter.info.parameters > whole.info.parameters


@pytest.mark.parametrize("lora", [{"rslora": True}, {"dora": True}, {"rslora": True, "dora": True}])
def test_ways_of_adapting_are_the_same_model_merged_unmerged_and_in_peft(trained, lora):
    whole, adapter = (load_policy(trained("sft", merge, **lora), "fp32", "cpu") for merge in (True, False))
    torch.testing.assert_close(logits(whole.model), logits(adapter.model), rtol=1e-4, atol=1e-4)
    plain = load_policy(trained("sft", True), "fp32", "cpu")
    assert (logits(plain.model) - logits(whole.model)).abs().max() > 0.01, "it learned as plain adapters do"
    import peft  # slow to import, and every process collects this

    folder = trained("sft", False, **lora)
    theirs = peft.PeftModel.from_pretrained(
        AutoModelForCausalLM.from_pretrained(folder / "base", dtype=torch.float32), folder
    )
    torch.testing.assert_close(logits(theirs), logits(adapter.model), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", ["sft", "reward_model"])
def test_peft_loads_our_adapters_as_they_are(trained, method):
    folder = trained(method, False)
    if method == "sft":
        base = AutoModelForCausalLM.from_pretrained(folder / "base", dtype=torch.float32)
        ours = load_policy(folder, "fp32", "cpu")
    else:
        base = AutoModelForSequenceClassification.from_pretrained(folder / "base", num_labels=1, dtype=torch.float32)
        base.config.pad_token_id = 0
        ours = load_reward_model(folder, "fp32", "cpu")
    import peft  # slow to import, and every process collects this

    theirs = peft.PeftModel.from_pretrained(base, folder).eval()
    torch.testing.assert_close(logits(ours.model), logits(theirs), rtol=1e-5, atol=1e-6)


def test_the_reward_head_survives_saving(trained):
    """It is trained whole, and it is neither the fresh one nor lost."""
    written = load_file(trained("reward_model", False) / "adapter_model.safetensors")
    head = written["base_model.model.score.weight"].clone()
    again = load_reward_model(trained("reward_model", False), "fp32", "cpu").model.score.weight
    assert torch.equal(again, head)
    merged = load_file(trained("reward_model", True) / "model.safetensors")["score.weight"]
    assert torch.equal(merged, head)
    width = head.shape[1]
    fresh = torch.randn(1, width, generator=torch.Generator().manual_seed(0)) / (width + 1)
    assert not torch.equal(head, fresh)


def test_the_base_stays_as_it_was_and_is_stored_once(trained, base_model, tmp_path):
    folder = trained("sft", False)
    weights = (base_model / "model.safetensors").read_bytes()
    assert (folder / "base" / "model.safetensors").read_bytes() == weights
    store = ArtifactStore(f"file://{tmp_path / 'store'}")
    first, second = (store.put_folder(trained(method, False)) for method in ("sft", "rwr"))
    blobs = {file["sha256"] for saved in (first, second) for file in saved.files}
    on_disk = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert len(on_disk) == len(blobs) < len(first.files) + len(second.files)
    assert sum(path.stat().st_size == len(weights) for path in on_disk) == 1
    fetched = tmp_path / "fetched"
    store.fetch(first, fetched)
    ours, theirs = (load_policy(path, "fp32", "cpu").model for path in (folder, fetched))
    assert torch.equal(logits(ours), logits(theirs))


def test_an_adapter_is_served_and_trained_on(trained, make_stage):
    folder = trained("decision_transformer", False)
    policy = load_policy(folder, "fp32", "cpu")
    engine = TransformersEngine(policy.model, policy.renderer, policy.device)
    decoding = GenerateConfig(decoding={"max_new_tokens": 4}).decoding
    (answer,) = engine.generate([Request(0, [{"role": "user", "content": "bread"}], "5.00")], decoding, 0)
    assert answer.finished or answer.token_ids
    further = make_stage({**CONFIG, "method": "sft", "max_steps": 1, "lr": 1e-9}, model=folder)
    train.run(further)
    whole = load_policy(further.directory / "outputs" / "model", "fp32", "cpu")
    torch.testing.assert_close(logits(whole.model), logits(policy.model), rtol=1e-3, atol=1e-4)
    over = make_stage({**CONFIG, "method": "sft", "lora": {**LORA, "merge": False}}, model=folder)
    train.run(over)
    base = AutoModelForCausalLM.from_pretrained(over.directory / "outputs" / "model" / "base", dtype=torch.float32)
    torch.testing.assert_close(logits(base), logits(policy.model), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("damage", ["missing", "foreign", "headless"])
def test_an_adapter_that_does_not_fit_is_refused(trained, tmp_path, damage):
    folder = tmp_path / "model"
    shutil.copytree(trained("reward_model" if damage == "headless" else "sft", False), folder)
    tensors = load_file(folder / "adapter_model.safetensors")
    name = "base_model.model.score.weight" if damage == "headless" else sorted(tensors)[0]
    gone = tensors.pop(name)
    if damage == "foreign":
        tensors |= {name: gone, "base_model.model.other.lora_A.weight": gone.clone()}
    save_file(tensors, folder / "adapter_model.safetensors")
    load = load_reward_model if damage == "headless" else load_policy
    with pytest.raises(BadInput, match="does not fit its base: 1 tensors"):
        load(folder, "fp32", "cpu")


@pytest.mark.parametrize("what", ["lost", "changed"])
def test_an_adapter_that_reads_back_differently_is_an_error(make_stage, base_model, monkeypatch, what):
    def damaged(tensors: dict[str, torch.Tensor], path: Path) -> None:
        name = "base_model.model.score.weight"
        others = {other: tensor for other, tensor in tensors.items() if other != name}
        save_file(others if what == "lost" else {**others, name: tensors[name] + 1}, path)

    monkeypatch.setattr(adapters, "save_file", damaged)
    config = {**CONFIG, "method": "reward_model", "max_steps": 1, "lora": {**LORA, "merge": False}}
    stage = make_stage(config, model=base_model, data="preferences")
    with pytest.raises(SavedModelDiffers, match=r"score\.weight"):
        train.run(stage)
    assert not list((stage.directory / "outputs").iterdir())


def test_attention_alone_can_be_adapted(make_stage, base_model):
    stage = make_stage(
        {**CONFIG, "method": "sft", "max_steps": 1, "lora": {**LORA, "targets": "attention", "merge": False}},
        model=base_model,
    )
    train.run(stage)
    config = json.loads((stage.directory / "outputs" / "model" / "adapter_config.json").read_text())
    assert sorted(config["target_modules"]) == ["k_proj", "o_proj", "q_proj", "v_proj"]


@pytest.fixture(scope="module")
def bf16_model(base_model, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bf16") / "model"
    shutil.copytree(base_model, folder)
    AutoModelForCausalLM.from_pretrained(base_model, dtype=torch.bfloat16).save_pretrained(folder)
    return folder


@pytest.fixture
def in_bf16():
    """This process's runs are in float32 otherwise, and accelerate remembers."""
    AcceleratorState._reset_state(reset_partial_state=True)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.mark.usefixtures("in_bf16")
@pytest.mark.parametrize("method", ["dpo", "reward_model"])
@pytest.mark.parametrize("merge", [True, False])
def test_a_frozen_base_in_bf16_stays_so_and_gives_the_same_numbers(make_stage, bf16_model, monkeypatch, method, merge):
    config = {**CONFIG, "method": method, "precision": "bf16", "lora": {**LORA, "merge": merge}, "max_steps": 3}
    outcomes = []
    for change in (True, False):
        if not change:
            monkeypatch.setattr(setup, "keep_bf16", lambda model: None)
            monkeypatch.setattr(setup, "leave_casts_to_autocast", lambda model: None)
        stage = make_stage(config, bf16_model, "preferences")
        train.run(stage)
        folder = stage.directory / "outputs" / "model"
        weights = load_file(folder / ("model.safetensors" if merge else "adapter_model.safetensors"))
        outcomes.append((metrics_of(stage._events.events), weights))
    (metrics, weights), (expected, others) = outcomes
    assert {step: values["loss"] for step, values in metrics.items()} == {
        step: values["loss"] for step, values in expected.items()
    }
    assert weights.keys() == others.keys()
    assert all(torch.equal(weights[name], others[name]) for name in weights)


def test_only_frozen_matrices_that_came_in_bf16_stay_in_it(bf16_model, base_model, trained):
    def opened(folder: Path, **changes) -> dict[str, set[torch.dtype]]:
        start = open_model(
            folder, RewardModelConfig(method="reward_model", **{"lora": LORA, "precision": "bf16"} | changes)
        )
        kinds: dict[str, set[torch.dtype]] = {"learned": set(), "frozen": set(), "vectors": set()}
        for parameter in start.model.parameters():
            kind = "learned" if parameter.requires_grad else "frozen" if parameter.ndim > 1 else "vectors"
            kinds[kind].add(parameter.dtype)
        return kinds

    whole = {torch.float32}
    assert opened(bf16_model) == {"learned": whole, "frozen": {torch.bfloat16}, "vectors": whole}
    unrounded = {"learned": whole, "frozen": whole, "vectors": whole}
    assert opened(base_model) == opened(bf16_model, precision="fp32") == unrounded
    assert opened(bf16_model, lora=None) == {**unrounded, "frozen": set(), "vectors": set()}
    assert opened(trained("reward_model", False)) == unrounded, "what is merged is no longer what was stored"


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["ddp", "zero2", "zero3"])
@pytest.mark.parametrize("merge", [True, False])
def test_two_processes_learn_the_same_adapters(make_stage, wide_model, strategy, merge):
    def started(**config) -> Stage:
        lora = {**LORA, "merge": merge, "dropout": 0.0}
        return make_stage(
            {**CONFIG, "method": "reward_model", "micro_batch": 3, "lora": lora, **config}, wide_model, "preferences"
        )

    alone, shared = started(), started(strategy=strategy)
    losses = []
    for stage, run in ((alone, run_forked), (shared, run_ranks)):
        code, events, stderr = run(stage)
        assert code == 0, stderr[-3000:]
        losses.append({step: values["loss"] for step, values in metrics_of(events).items()})
    assert losses[1] == {step: pytest.approx(loss, rel=1e-4) for step, loss in losses[0].items()}
    name = "model.safetensors" if merge else "adapter_model.safetensors"
    ours, theirs = (load_file(stage.directory / "outputs" / "model" / name) for stage in (alone, shared))
    assert ours.keys() == theirs.keys()
    for tensor in ours:
        torch.testing.assert_close(theirs[tensor], ours[tensor], rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize(
    ("method", "dora"),
    [("sft", False), ("sft", True), pytest.param("reward_model", False, marks=pytest.mark.long)],
)
def test_adapters_over_a_4_bit_base_stand_on_the_weights_as_they_were(make_stage, wide_model, method, dora):
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed")
    data = data_of(method)
    folders, losses = [], []
    for lora in ({"quantise": "nf4", "merge": False}, {"quantise": "nf4", "merge": True}, {"merge": True}):
        config = {**CONFIG, "method": method, "evaluate_every": 2, "lora": {**LORA, "dora": dora, **lora}}
        stage = make_stage(config, model=wide_model, data=data)
        train.run(stage)
        folders.append(stage.directory / "outputs" / "model")
        losses.append([event.values["loss"] for event in recorded(stage, "metrics")])
    assert losses[0] == losses[1] != losses[2]
    assert losses[0][0] == pytest.approx(losses[2][0], rel=0.05)
    assert losses[0][-1] < losses[0][0]
    load = load_reward_model if method == "reward_model" else load_policy
    adapter, whole, plain = (load(folder, "fp32", "cpu") for folder in folders)
    torch.testing.assert_close(logits(adapter.model), logits(whole.model), rtol=1e-4, atol=1e-5)
    assert (folders[0] / "base" / "model.safetensors").read_bytes() == (wide_model / "model.safetensors").read_bytes()
    assert whole.info.parameters == plain.info.parameters


def test_a_4_bit_base_passes_gradients_on_after_an_evaluation_too(wide_model):
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed")
    model = open_model(wide_model, SftConfig(method="sft", lora={"quantise": "nf4"})).model
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.05)

    def gradients() -> dict[str, torch.Tensor]:
        model.train().zero_grad()
        model(input_ids=IDS, labels=IDS).loss.backward()
        return {name: p.grad.clone() for name, p in model.named_parameters() if p.requires_grad}

    before = gradients()
    model.eval()
    logits(model)
    after = gradients()
    assert any(gradient.abs().max() > 1e-4 for gradient in before.values())
    for name, gradient in before.items():
        torch.testing.assert_close(after[name], gradient, rtol=1e-4, atol=1e-7)


def test_a_quantised_base_cannot_be_spread():
    with pytest.raises(ValueError, match="needs strategy ddp"):
        SftConfig(method="sft", strategy="zero3", lora={"quantise": "nf4"})


def test_adapters_at_the_rate_of_all_weights_are_warned_of(make_stage, base_model):
    config = {"run": "train", "method": "sft", "batch": 8, "max_steps": 1, "max_length": 96}
    for changes, warned in (
        ({"lora": LORA}, True),
        ({"lora": LORA, "lr": 1e-4}, False),
        ({}, False),
    ):
        stage = make_stage({**config, **changes}, model=base_model, data=data_of("sft"))
        train.run(stage)
        (prepared,) = recorded(stage, "prepared")[:1]
        warnings = [warning for warning in prepared.warnings if warning.code == "lora_at_full_rate"]
        assert len(warnings) == warned
        assert all("set lr to about 5e-05" in warning.message for warning in warnings)

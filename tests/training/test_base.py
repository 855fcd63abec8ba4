"""Base models: random weights with a tokenizer of the data, folders and hub names; nothing unsafe gets in."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from running import recorded
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from steerboard_contracts.errors import BadInput, EmptySelection, UnsafeModelFile
from steerboard_contracts.models import ModelInfo
from steerboard_workers.stages import base
from steerboard_workers.stages.loading import (
    SavedModelDiffers,
    distinct_pad,
    load_policy,
    load_tokenizer,
    save_model,
)

TINY = {"run": "base", "source": "random:tiny-llama", "vocabulary": 400, "hidden": 48, "layers": 2, "heads": 2}


def bring_in(make_stage, source, **spec):
    stage = make_stage({"run": "base", "source": str(source)}, **spec)
    return stage, base.run(stage)


@pytest.fixture
def folder(base_model, tmp_path):
    copy = tmp_path / "some-model"
    shutil.copytree(base_model, copy)
    return copy


def test_a_random_base_is_the_same_for_the_same_seed_and_data(make_stage, base_model):
    def made(**config):
        stage = make_stage({**TINY, "max_length": 128, **config})
        base.run(stage)
        return stage.directory / "outputs" / "model"

    again, other = made(), made(seed=1)
    assert (again / "tokenizer.json").read_bytes() == (base_model / "tokenizer.json").read_bytes()
    assert (again / "model.safetensors").read_bytes() == (base_model / "model.safetensors").read_bytes()
    assert (other / "model.safetensors").read_bytes() != (base_model / "model.safetensors").read_bytes()


def test_the_tokenizer_has_one_token_for_the_score_marker_and_one_for_each_digit(base_model):
    tokenizer = AutoTokenizer.from_pretrained(base_model)
    tokens = tokenizer.tokenize(" <rm_score> 5.00 in 1234")
    assert tokens.count("<rm_score>") == 1
    assert [t for t in tokens if t.strip("Ġ").isdigit()] == ["5", "0", "0", "1", "2", "3", "4"]
    assert 300 < len(tokenizer) <= 400
    assert tokenizer.decode(tokenizer("Héllo <b> 漢字\n\t!")["input_ids"]) == "Héllo <b> 漢字\n\t!"
    assert len({tokenizer.pad_token_id, tokenizer.eos_token_id, tokenizer.bos_token_id}) == 3


def test_a_random_base_needs_texts(make_stage, tmp_path):
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    with pytest.raises(EmptySelection):
        base.run(make_stage(TINY, data=str(empty)))


def test_a_folder_comes_in_with_its_weights_and_without_the_rest(make_stage, folder):
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    (folder / "modeling_evil.py").write_text("raise SystemExit")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "auto_map": {"AutoModel": "modeling_evil.Evil"}}))
    (folder / "steerboard.json").unlink()
    stage, done = bring_in(make_stage, folder)
    out = stage.directory / "outputs" / "model"
    names = {p.name for p in out.iterdir()}
    assert not [n for n in names if n.endswith((".bin", ".py"))]
    assert "auto_map" not in json.loads((out / "config.json").read_text())
    ours, theirs = (load_file(f / "model.safetensors") for f in (out, folder))
    assert all(torch.equal(t, ours[n]) for n, t in theirs.items())
    info = ModelInfo.model_validate_json((out / "steerboard.json").read_text())
    assert (info.role, info.architecture) == ("base", "LlamaForCausalLM")
    assert info.template == "chat"  # the folder has a chat template of its own
    assert info.parameters == done.summary["parameters"] > 0


def test_a_base_without_a_chat_template_gets_the_plain_one(make_stage, folder):
    (folder / "chat_template.jinja").unlink()
    (folder / "steerboard.json").unlink()
    stage, _ = bring_in(make_stage, folder)
    policy = load_policy(stage.directory / "outputs" / "model")
    assert policy.info.template == "plain"
    ids = policy.renderer.prompt_ids([{"role": "user", "content": "bread?"}])
    assert policy.tokenizer.decode(ids) == "<s>User: bread? Assistant:"


def test_pickled_weights_alone_are_refused(make_stage, folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(UnsafeModelFile, match=r"pytorch_model\.bin"):
        bring_in(make_stage, folder)


def test_an_architecture_that_needs_code_is_refused(make_stage, folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "evil", "auto_map": {}}))
    with pytest.raises(UnsafeModelFile, match="evil"):
        bring_in(make_stage, folder)


@pytest.mark.parametrize("source", ["random:huge", "no such model", "/absent/folder", "a/b/c"])
def test_an_unknown_model_says_what_can_be_given(make_stage, source):
    with pytest.raises(BadInput) as raised:
        bring_in(make_stage, source)
    assert raised.value.code == "unknown_model"
    assert "random:tiny-llama" in raised.value.hint


@pytest.fixture
def hub(folder, tmp_path, monkeypatch):
    """A hub that knows one model, and what it was asked for."""
    import huggingface_hub

    asked: dict = {}
    snapshot = tmp_path / "snapshots" / "0123abc"
    snapshot.parent.mkdir()
    folder.rename(snapshot)

    def model_info(self, name, *, revision, timeout):
        if asked.get("offline"):
            raise RuntimeError("Name or service not known")
        return huggingface_hub.ModelInfo(id=name, sha="0123abc")

    def download(name, *, revision, allow_patterns, local_files_only=False):
        if asked.get("offline") == "empty cache":
            raise RuntimeError("not in the cache")
        asked.update(name=name, revision=revision, patterns=allow_patterns, local=local_files_only)
        return str(snapshot)

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", model_info)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    return asked


def test_a_hub_model_is_fetched_without_pickles_and_its_revision_is_kept(make_stage, hub):
    stage, _ = bring_in(make_stage, "org/some-model@main")
    assert (hub["name"], hub["revision"], hub["local"]) == ("org/some-model", "0123abc", False)
    assert not [p for p in hub["patterns"] if p.endswith((".bin", ".pt", ".py"))]
    info = json.loads((stage.directory / "outputs" / "model" / "steerboard.json").read_text())
    assert info["lineage"] == {"source": "org/some-model@main", "revision": "0123abc"}
    assert recorded(stage, "log")


def test_without_a_network_a_cached_hub_model_is_taken(make_stage, hub):
    hub["offline"] = "full cache"
    stage, _ = bring_in(make_stage, "org/some-model")
    assert hub["local"]
    assert recorded(stage, "log")[0].level == "warning"


def test_a_hub_that_cannot_be_reached_is_named(make_stage, hub):
    hub["offline"] = "empty cache"
    with pytest.raises(BadInput, match="Name or service not known") as raised:
        bring_in(make_stage, "org/some-model")
    assert raised.value.code == "unknown_model"


def test_weights_that_are_missing_are_noticed(make_stage, folder):
    from safetensors.torch import save_file

    weights = load_file(folder / "model.safetensors")
    dropped = next(name for name in weights if "layers.1.mlp" in name)
    del weights[dropped]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BadInput, match="not in the folder"):
        bring_in(make_stage, folder)


def test_a_save_that_reads_back_differently_is_an_error(base_model, tmp_path, monkeypatch):
    policy = load_policy(base_model)

    def damaged(folder):
        AutoModelForCausalLM.from_pretrained(base_model).save_pretrained(folder)
        with torch.no_grad():
            policy.model.model.norm.weight.add_(1)

    monkeypatch.setattr(policy.model, "save_pretrained", damaged)
    with pytest.raises(SavedModelDiffers):
        save_model(tmp_path / "out", policy.model, policy.tokenizer, policy.info)


def test_padding_gets_a_token_that_is_not_the_end(base_model):
    tokenizer = load_tokenizer(base_model)
    assert distinct_pad(tokenizer) == "<pad>"
    tokenizer.pad_token = tokenizer.eos_token
    assert distinct_pad(tokenizer) == "<pad>"  # found again among the special tokens


def test_a_reward_model_of_a_base_whose_padding_is_its_end_pads_otherwise(make_stage, folder):
    from steerboard_contracts.training import RewardModelConfig
    from steerboard_workers.stages.training.setup import open_model

    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "pad_token": "</s>"}))
    start = open_model(folder, RewardModelConfig(method="reward_model"))
    assert start.model.config.pad_token_id == start.tokenizer.pad_token_id != start.tokenizer.eos_token_id

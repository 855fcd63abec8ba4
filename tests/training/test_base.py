"""Base models: random weights with a tokenizer of the data, folders and hub names; nothing unsafe gets in."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from running import recorded
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from steerboard_contracts.errors import BadInput, BadModel, EmptySelection, NoSpaceLeft, UnsafeModelFile
from steerboard_contracts.files.local_folders import FolderNotAllowed
from steerboard_contracts.models import ModelInfo
from steerboard_workers.stages import base
from steerboard_workers.stages.models.foreign import its_own_fault
from steerboard_workers.stages.models.model_io import distinct_pad, load_policy, load_tokenizer
from steerboard_workers.stages.models.model_saving import SavedModelDiffers, save_model

TINY = {"run": "base", "source": "random:tiny-llama", "vocabulary": 400, "hidden": 48, "layers": 2, "heads": 2}


def bring_in(make_stage, source, **spec):
    folders = {"roots": [str(Path(source).parent)]} if Path(source).is_absolute() else {}
    stage = make_stage({"run": "base", "source": str(source)}, folders=folders, **spec)
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
    with pytest.raises(BadInput, match=r"no \.safetensors file"):
        bring_in(make_stage, folder)


def test_a_stage_reads_no_folder_that_its_worker_does_not_allow(make_stage, folder, tmp_path):
    stage = make_stage({"run": "base", "source": str(folder)})
    with pytest.raises(FolderNotAllowed):
        base.run(stage)
    # Below a root, but exchanged for a link that leads out of it since the run was planned.
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine").symlink_to(folder)
    with pytest.raises(FolderNotAllowed):
        bring_in(make_stage, tmp_path / "models" / "mine")


def test_an_uploaded_model_comes_in(make_stage, folder):
    uploaded = {"type": "model", "name": "uploaded", "path": str(folder), "content_hash": "m"}
    stage = make_stage({"run": "base", "source": f"upload:{'0' * 64}"}, data=None, inputs={"uploaded": uploaded})
    assert base.run(stage).summary["architecture"] == "LlamaForCausalLM"


def test_a_model_for_which_the_disk_has_no_room_is_not_copied(make_stage, folder):
    with pytest.raises(NoSpaceLeft):
        bring_in(make_stage, folder, disk_reserve_mb=1 << 40)


CHOICES = {
    "attn_implementation": "somebody/kernel",
    "_attn_implementation": {"": "somebody/kernel"},
    "_attn_implementation_internal": "somebody/kernel",
    "experts_implementation": "somebody/kernel",
    "auto_map": {"AutoModelForCausalLM": "modeling_evil.Evil"},
    "transformers_weights": "../../other.safetensors",
}


def test_what_chooses_code_kernels_or_files_is_left_out_and_said(make_stage, folder):
    config = json.loads((folder / "config.json").read_text())
    nested = {"some_part": [CHOICES]}
    (folder / "config.json").write_text(json.dumps({**config, **CHOICES, **nested}))
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text())
    odd = {"auto_map": {}, "vocab_file": "/etc/passwd", "fast_tokenizer_files": ["tokenizer./../../x.json"]}
    (folder / "tokenizer_config.json").write_text(json.dumps({**tokenizer, **odd}))
    stage, _ = bring_in(make_stage, folder)
    out = stage.directory / "outputs" / "model"
    written = (out / "config.json").read_text() + (out / "tokenizer_config.json").read_text()
    assert not [name for name in (*CHOICES, *odd) if f'"{name}"' in written]
    said = next(event.message for event in recorded(stage, "log") if event.level == "warning")
    assert all(name in said for name in ("auto_map", "attn_implementation", "vocab_file"))


def truncated(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])


def garbage(folder):
    (folder / "model.safetensors").write_bytes(os.urandom(5000))


def empty_weights(folder):
    (folder / "model.safetensors").write_bytes(b"")


def header_bomb(folder):
    with (folder / "model.safetensors").open("wb") as file:
        file.write((90 << 20).to_bytes(8, "little"))
        file.truncate(100 << 20)


def overlapping(folder):
    header = json.dumps({name: {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]} for name in "ab"}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(32))


def nested_header(folder):
    header = b"[" * 100_000
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)


def configured(**changes):
    def change(folder):
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, **changes}))

    change.__name__ = ",".join(f"{name}={str(value)[:20]}" for name, value in changes.items())
    return change


def written(name, content):
    def change(folder):
        (folder / name).write_bytes(content)

    change.__name__ = f"{name}={content[:12]!r}"
    return change


def index_elsewhere(folder):
    (folder / "model.safetensors").rename(folder.parent / "stolen.safetensors")
    shutil.copyfile(folder.parent / "stolen.safetensors", folder / "part.safetensors")
    names = load_file(folder / "part.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, "../stolen.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


BROKEN = [
    *(truncated, garbage, empty_weights, header_bomb, overlapping, nested_header, index_elsewhere),
    configured(num_hidden_layers=10**9),
    configured(num_hidden_layers=50),
    configured(hidden_size=2**30),
    configured(hidden_size=96),
    configured(vocab_size=10**12),
    configured(vocab_size=2**30),
    configured(max_position_embeddings=10**12),
    configured(hidden_act="no such function"),
    configured(num_attention_heads="many"),
    configured(num_attention_heads=0),
    configured(torch_dtype="complex1024", dtype="complex1024"),
    written("config.json", b"\xff\xfe{"),
    written("config.json", b"[]"),
    written("config.json", b"{" * 50_000),
    written("config.json", b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    written("tokenizer.json", b""),
    written("tokenizer.json", b"[]"),
    written("tokenizer.json", b'{"version": "1.0", "model": {"type": "BPE", "vocab": {"a": -1}, "merges": [[]]}}'),
    written("tokenizer_config.json", b"[]"),
    written("tokenizer_config.json", b'{"tokenizer_class": 7, "added_tokens_decoder": {"x": []}}'),
    written("generation_config.json", b"not json"),
    written("model.safetensors.index.json", b'{"weight_map": {"a": 7}}'),
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda change: change.__name__)
def test_a_broken_model_ends_as_what_it_is_and_is_not_tried_again(make_stage, folder, broken):
    broken(folder)
    with pytest.raises(BadModel) as raised:
        bring_in(make_stage, folder, data=None)
    assert raised.value.code == "bad_model"
    assert not raised.value.retryable


def test_a_broken_steerboard_json_is_named(make_stage, folder):
    (folder / "steerboard.json").write_text('{"role": "king"}')
    with pytest.raises(BadInput) as raised:
        bring_in(make_stage, folder, data=None)
    assert raised.value.code == "bad_model_info"


def test_a_panic_of_the_tokenizers_is_the_models_fault_and_a_full_memory_is_not():
    class PanicException(BaseException):
        """The exception as pyo3 has it, which no module of Python names."""

    with pytest.raises(BadModel), its_own_fault("it"):
        raise PanicException("index out of bounds")
    with pytest.raises(MemoryError), its_own_fault("it"):
        raise MemoryError


def test_an_architecture_that_needs_code_is_refused(make_stage, folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "evil", "auto_map": {}}))
    with pytest.raises(UnsafeModelFile, match="evil"):
        bring_in(make_stage, folder)


@pytest.mark.parametrize("source", ["random:huge", "no such model", "a/b/c", "a/..", "a/b@../../c"])
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
        siblings = [{"rfilename": path.name} for path in snapshot.iterdir()]
        return huggingface_hub.ModelInfo(id=name, sha="0123abc", siblings=siblings)

    def download(name, *, revision, allow_patterns, local_files_only=False):
        if asked.get("offline") == "empty cache":
            raise RuntimeError("not in the cache")
        asked.update(name=name, revision=revision, patterns=allow_patterns, local=local_files_only)
        return str(snapshot)

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
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
    from steerboard_contracts.methods.reward_model import RewardModelConfig
    from steerboard_workers.stages.training.setup import open_model

    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "pad_token": "</s>"}))
    start = open_model(folder, RewardModelConfig(method="reward_model"))
    assert start.model.config.pad_token_id == start.tokenizer.pad_token_id != start.tokenizer.eos_token_id

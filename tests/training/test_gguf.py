"""GGUF files come in as ordinary models, with what they hold, or are refused with what to do."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from running import recorded
from transformers import AutoModelForCausalLM, AutoTokenizer

from steerboard_contracts.errors import BadInput, BadModel, NoSpaceLeft
from steerboard_contracts.files.base_sources import SeveralGgufFiles, UnsupportedGguf
from steerboard_contracts.models import ModelInfo
from steerboard_workers.stages import base
from steerboard_workers.stages.models.model_io import load_policy
from support.models.gguf_models import GEMMA_TOKENS, TEMPLATE, write_gemma, write_gguf
from support.servers.hub_server import COMMIT, hub_of_models


@pytest.fixture(scope="module")
def llama(make_stage) -> Path:
    """A tiny Llama whose rows fill blocks of 32."""
    config = {"run": "base", "source": "random:tiny-llama", "vocabulary": 400, "hidden": 64, "layers": 2, "heads": 2}
    stage = make_stage({**config, "max_length": 128})
    base.run(stage)
    return stage.directory / "outputs" / "model"


@pytest.fixture(scope="module")
def written(llama, tmp_path_factory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.Q8_0.gguf", llama)


@pytest.fixture
def folder(written, tmp_path) -> Path:
    """A folder with one GGUF file, to be changed."""
    place = tmp_path / "from-elsewhere"
    place.mkdir()
    shutil.copy(written, place)
    return place


def bring_in(make_stage, source, **spec):
    root = Path(source).parent
    stage = make_stage({"run": "base", "source": str(source)}, data=None, folders={"roots": [str(root)]}, **spec)
    return stage, base.run(stage), stage.directory / "outputs" / "model"


def logits(folder: Path) -> torch.Tensor:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        output: torch.Tensor = model(torch.arange(5, 60)[None]).logits
    return output


def test_a_folder_with_a_gguf_file_becomes_an_ordinary_model(make_stage, llama, folder):
    (folder / "README.md").write_text("")
    stage, _, out = bring_in(make_stage, folder)
    assert {path.suffix for path in out.iterdir()} <= {".json", ".safetensors", ".jinja"}
    assert "gguf" not in (out / "config.json").read_text()
    theirs = logits(llama)
    assert (logits(out) - theirs).abs().max() < 0.05 * theirs.abs().max()
    ours, before = AutoTokenizer.from_pretrained(out), AutoTokenizer.from_pretrained(llama)
    text = "<s>user: Bread at 180 degrees?</s>"
    assert ours(text)["input_ids"] == before(text)["input_ids"]
    assert (ours.chat_template, ours.eos_token, ours.pad_token) == (TEMPLATE, "</s>", "<pad>")
    policy = load_policy(out)
    prompt = policy.renderer.prompt_ids([{"role": "user", "content": "bread?"}])
    assert policy.tokenizer.decode(prompt) == "<s>user: bread?</s><s>assistant:"
    assert not list(stage.directory.glob("**/*.gguf"))


# What llama.cpp makes of this text, by the patterns of llama-vocab.cpp; Ġ is a space, Ċ a line end.
SPLITS = {
    "gpt-2": ["We", "'ve", "Ġ", "Ġ42", "Ċ", "Ġx"],
    "smollm": ["We", "'ve", "ĠĠ", "4", "2", "Ċ", "Ġx"],
    "llama-bpe": ["We", "'ve", "Ġ", "Ġ", "42", "Ċ", "Ġx"],
    "qwen2": ["We", "'ve", "Ġ", "Ġ", "4", "2", "Ċ", "Ġx"],
    "hunyuan": ["We", "'ve", "Ġ", "Ġ", "4", "2", "Ċ", "Ġx"],
}


@pytest.mark.parametrize("split", SPLITS)
def test_texts_are_split_as_the_file_has_it(make_stage, llama, tmp_path, split):
    path = write_gguf(tmp_path / "split" / "model.gguf", llama, split=split)
    _, _, out = bring_in(make_stage, path.parent)
    parts = AutoTokenizer.from_pretrained(out).backend_tokenizer.pre_tokenizer.pre_tokenize_str("We've  42\n x")
    assert "|".join(text for text, _ in parts) == "|".join(SPLITS[split])


def test_a_way_of_splitting_that_we_do_not_write_is_named(make_stage, llama, tmp_path):
    path = write_gguf(tmp_path / "split" / "model.gguf", llama, split="viking")
    stage, _, _ = bring_in(make_stage, path.parent)
    assert any("splits texts by `viking`" in event.message for event in recorded(stage, "log"))


def test_tokens_of_spaces_are_those_of_gemma(make_stage, tmp_path):
    _, _, out = bring_in(make_stage, write_gemma(tmp_path / "gemma" / "gemma.gguf").parent)
    tokenizer = AutoTokenizer.from_pretrained(out)
    assert tokenizer.convert_ids_to_tokens([4, 5]) == ["\u2581\u2581", "\u2581\u2581\u2581"]
    ids = tokenizer("a  b   c", add_special_tokens=False)["input_ids"]
    assert ids == [GEMMA_TOKENS.index(token) for token in ("a", "  ", "b", "   ", "c")]
    assert tokenizer.decode(ids) == "a  b   c"


def test_the_model_says_what_it_was_dequantised_from(make_stage, folder):
    stage, done, out = bring_in(make_stage, folder)
    info = ModelInfo.model_validate_json((out / "steerboard.json").read_text())
    assert (info.lineage["file"], info.lineage["dequantised_from"]) == ("tiny.Q8_0.gguf", "Q8_0")
    assert done.summary["dequantised_from"] == "Q8_0"
    assert any("dequantised from Q8_0" in event.message for event in recorded(stage, "log"))
    assert json.loads((out / "config.json").read_text())["dtype"] == "bfloat16"


@pytest.mark.parametrize(("kind", "dtype"), [("F16", "float16"), ("F32", "float32"), ("BF16", "bfloat16")])
def test_plain_weights_keep_their_dtype_and_their_values(make_stage, llama, tmp_path, kind, dtype):
    path = write_gguf(tmp_path / "plain" / "model.gguf", llama, kind)
    _, done, out = bring_in(make_stage, path.parent)
    assert json.loads((out / "config.json").read_text())["dtype"] == dtype
    assert "dequantised_from" not in done.summary
    torch.testing.assert_close(logits(out), logits(llama), rtol=0, atol={"F32": 0, "F16": 0.01, "BF16": 0.1}[kind])


def test_of_several_files_one_is_chosen_by_its_path(make_stage, llama, folder):
    write_gguf(folder / "tiny.F32.gguf", llama, "F32")
    with pytest.raises(SeveralGgufFiles, match=re.escape("2 GGUF files: tiny.F32.gguf, tiny.Q8_0.gguf")) as raised:
        bring_in(make_stage, folder)
    assert "FOLDER/tiny.F32.gguf" in raised.value.hint
    stage = make_stage(
        {"run": "base", "source": f"{folder}/tiny.F32.gguf"}, data=None, folders={"roots": [str(folder)]}
    )
    base.run(stage)
    assert torch.equal(logits(stage.directory / "outputs" / "model"), logits(llama))


def test_safetensors_next_to_a_gguf_file_are_taken(make_stage, llama, folder):
    shutil.copytree(llama, folder, dirs_exist_ok=True)
    _, _, out = bring_in(make_stage, folder)
    assert torch.equal(logits(out), logits(llama))
    assert not list(out.glob("*.gguf"))


def test_an_uploaded_gguf_file_comes_in(make_stage, folder):
    uploaded = {"type": "model", "name": "uploaded", "path": str(folder), "content_hash": "m"}
    stage = make_stage({"run": "base", "source": f"upload:{'0' * 64}"}, data=None, inputs={"uploaded": uploaded})
    assert base.run(stage).summary["architecture"] == "LlamaForCausalLM"


def test_a_gguf_file_of_the_hub_is_fetched_alone(make_stage, written, tmp_path, monkeypatch):
    with hub_of_models(monkeypatch) as hub:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
        hub.models["org/tiny-GGUF"] = {name: written.read_bytes() for name in ("a.gguf", "b.gguf")}
        with pytest.raises(SeveralGgufFiles, match=r"a\.gguf, b\.gguf"):
            base.run(make_stage({"run": "base", "source": "org/tiny-GGUF"}, data=None))
        stage = make_stage({"run": "base", "source": "org/tiny-GGUF:b.gguf"}, data=None)
        base.run(stage)
    info = ModelInfo.model_validate_json((stage.directory / "outputs" / "model" / "steerboard.json").read_text())
    assert (info.lineage["file"], info.lineage["revision"]) == ("b.gguf", COMMIT)
    assert set(hub.fetched) == {"b.gguf"}


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-100])


def cut_off_in_the_header(path):
    path.write_bytes(path.read_bytes()[:1000])


def garbage(path):
    path.write_bytes(os.urandom(5000))


def changed(at, form, value):
    def change(path):
        content = bytearray(path.read_bytes())
        struct.pack_into(form, content, at, value)
        path.write_bytes(content)

    change.__name__ = f"{value} at {at}"
    return change


def longest_key(path):
    changed(24, "<Q", 1 << 62)(path)


@pytest.mark.parametrize(
    "broken",
    [
        *(cut_off, cut_off_in_the_header, garbage, longest_key),
        *(changed(8, "<Q", 1 << 60), changed(16, "<Q", 1 << 60), changed(8, "<Q", 500), changed(16, "<Q", 500)),
    ],
    ids=lambda change: change.__name__,
)
def test_a_file_that_is_cut_off_or_lies_about_its_sizes_is_refused(make_stage, folder, broken):
    broken(folder / "tiny.Q8_0.gguf")
    with pytest.raises(BadModel) as raised:
        bring_in(make_stage, folder)
    assert raised.value.code == "bad_model"
    assert not raised.value.retryable


@pytest.mark.parametrize("lie", [{"block_count": 10**9}, {"block_count": 19}, {"embedding_length": 1 << 30}])
def test_a_header_that_promises_more_than_the_tensors_have_is_refused(make_stage, llama, tmp_path, lie):
    path = write_gguf(tmp_path / "lying" / "model.gguf", llama, **lie)
    with pytest.raises(BadModel):
        bring_in(make_stage, path.parent)


def test_missing_tensors_are_noticed(make_stage, llama, tmp_path):
    path = write_gguf(tmp_path / "partial" / "model.gguf", llama, block_count=3)
    with pytest.raises(BadModel, match=r"tensors of LlamaForCausalLM are not in model\.gguf"):
        bring_in(make_stage, path.parent)


def test_tensors_that_the_model_does_not_read_are_named(make_stage, llama, tmp_path):
    path = write_gguf(tmp_path / "more" / "model.gguf", llama, block_count=1)
    stage, _, _ = bring_in(make_stage, path.parent)
    assert any("does not read 9 tensors" in event.message for event in recorded(stage, "log"))


@pytest.mark.parametrize(
    ("architecture", "metadata", "what"),
    [
        ("mpt", {}, "architecture 'mpt'"),
        ("llama", {"llama__rope__scaling__type": "yarn"}, r"scaled \(yarn\)"),
        ("llama", {"rope_factors": [1.0] * 8 + [3.0] * 8}, "scaled"),
        ("llama", {"split__count": 2}, "one of 2 parts"),
    ],
    ids=["architecture", "yarn", "own factors", "split"],
)
def test_what_transformers_cannot_read_is_refused_with_what_to_do(
    make_stage, llama, tmp_path, architecture, metadata, what
):
    path = write_gguf(tmp_path / "odd" / "model.gguf", llama, "Q8_0", architecture, **metadata)
    with pytest.raises(UnsupportedGguf, match=what) as raised:
        bring_in(make_stage, path.parent)
    assert raised.value.hint


def test_scaled_positions_of_llama_3_come_back(make_stage, llama, tmp_path):
    theta = json.loads((llama / "config.json").read_text())["rope_parameters"]["rope_theta"]
    waves = 2 * np.pi * theta ** (np.arange(16) / 16)
    smooth = np.clip((8192 / waves - 1) / 3, 0, 1)
    factors = 1 / ((1 - smooth) / 8 + smooth)
    path = write_gguf(tmp_path / "scaled" / "model.gguf", llama, rope_factors=factors)
    _, _, out = bring_in(make_stage, path.parent)
    assert json.loads((out / "config.json").read_text())["rope_parameters"] == {
        "rope_type": "llama3",
        "rope_theta": theta,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }


def test_one_part_of_a_split_model_is_refused_by_its_name(make_stage, folder):
    (folder / "tiny.Q8_0.gguf").rename(folder / "tiny-00001-of-00002.gguf")
    with pytest.raises(UnsupportedGguf, match="one of several parts") as raised:
        bring_in(make_stage, folder)
    assert "llama-gguf-split --merge tiny-00001-of-00002.gguf" in raised.value.hint


def test_a_file_that_is_not_there_is_named_with_those_that_are(make_stage, folder):
    stage = make_stage({"run": "base", "source": f"{folder}/other.gguf"}, folders={"roots": [str(folder)]})
    with pytest.raises(BadInput, match=r"no file other\.gguf; it has tiny\.Q8_0\.gguf"):
        base.run(stage)


def test_the_disk_has_to_have_room_for_what_the_file_expands_to(make_stage, folder):
    with pytest.raises(NoSpaceLeft):
        bring_in(make_stage, folder, disk_reserve_mb=1 << 40)

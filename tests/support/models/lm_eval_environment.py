"""The place where tests find lm-evaluation-harness, tasks of their own for it, and a model whose answers are known: a
table of which word follows which."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from steerboard.platform.processes.lm_eval import find_python
from steerboard.platform.settings import Settings
from steerboard_contracts.models import ModelRole

PYTHON = find_python(Settings())
needs_lm_eval = pytest.mark.skipif(PYTHON is None, reason="there is no .venv-lm-eval: run `make setup-benchmarks`")

ITEMS = 60
# The model answers 36 of 60 questions with the sign that the strict reading wants, 12 without, and 12 wrong.
STRICT, FLEXIBLE = 36 / ITEMS, 48 / ITEMS
# It answers those of 14 and 49 wrong among the 9 questions whose answer is run.
CODE = 7 / 9
# It finds each of 60 choices right whose number is not a multiple of 4.
CHOICES = 45 / ITEMS

_COMMON = """
dataset_path: json
dataset_kwargs: {{data_files: {{test: {file}, train: {file}}}}}
test_split: test
fewshot_split: train
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
metadata: {{version: 2.5}}
"""
_SUMS = """
task: sums
output_type: generate_until
generation_kwargs: {until: ["STOP"], max_gen_toks: 4, do_sample: false}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
filter_list:
  - name: strict-match
    filter: [{function: regex, regex_pattern: "#(\\\\d+)"}, {function: take_first}]
  - name: flexible-extract
    filter: [{function: regex, group_select: -1, regex_pattern: "(\\\\d+)"}, {function: take_first}]
"""
_CHOICES = """
task: choices
output_type: multiple_choice
doc_to_choice: ["no", "yes"]
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
"""
_GROUP = """
group: both
task: [choices, few]
aggregate_metric_list: [{metric: acc, weight_by_size: true}]
metadata: {version: 3}
"""
_CODE = """
task: code
unsafe_code: true
output_type: generate_until
generation_kwargs: {until: ["STOP"], max_gen_toks: 4, do_sample: false}
metric_list: [{metric: !function METRIC, aggregation: mean, higher_is_better: true}]
filter_list: [{name: program, filter: [{function: custom, filter_fn: !function utils.programs}]}]
"""
_CODE_UTILS = """
import evaluate

runs = evaluate.load("code_eval")

def programs(resps, docs):
    return [["value = " + one.strip("#") for one in resp] for resp in resps]

def passes(references, predictions, **_):
    return runs.compute(references=references, predictions=predictions, k=[1])[0]["pass@1"]
"""
_PROSE = """
task: prose
output_type: loglikelihood_rolling
dataset_path: json
dataset_kwargs: {data_files: {test: prose.jsonl}}
test_split: test
doc_to_text: ""
doc_to_target: "{{text}}"
metric_list: [{metric: word_perplexity}]
metadata: {version: 1}
"""
_SAMPLED = """
task: sampled
output_type: generate_until
generation_kwargs: {until: ["STOP"], max_gen_toks: 4, do_sample: true, temperature: 1.5}
repeats: 2
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""
_OTHER_UTILS = """
def passes(references, predictions, **_):
    exec(predictions[0][0])
    return 1.0
"""


def write_tasks(folder: Path) -> Path:
    """`sums` has two readings, `choices` one, and is in the group `both`; `code` runs what was answered, and
    `unconfined` does so by itself. `prose` is texts whose log-probs are asked for, and `sampled` two answers to each
    question, at a temperature."""
    folder.mkdir()
    rows = [{"question": f"q{n}", "answer": str(n)} for n in range(ITEMS)]
    choices = [{"question": f"c{n}", "answer": "1"} for n in range(ITEMS)]
    code = [{"question": f"q{n}", "answer": f"assert value == {n}"} for n in range(0, ITEMS, 7)]
    for name, task, data in (("sums", _SUMS, rows), ("choices", _CHOICES, choices), ("code", _CODE, code)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data))
        text = task.replace("METRIC", "utils.passes") + _COMMON.format(file=f"{name}.jsonl")
        (folder / f"{name}.yaml").write_text(text)
    choice = (folder / "choices.yaml").read_text()
    (folder / "choices.yaml").write_text(choice.replace('doc_to_target: "{{answer}}"', "doc_to_target: 1"))
    # The first 20 of them again, and a group of the two.
    (folder / "few.jsonl").write_text("".join(json.dumps(row) + "\n" for row in choices[:20]))
    few = (folder / "choices.yaml").read_text().replace("choices.jsonl", "few.jsonl")
    (folder / "few.yaml").write_text(few.replace("task: choices", "task: few"))
    (folder / "both.yaml").write_text(_GROUP)
    texts = [" ".join(f"q{n}" for n in range(first, last)) for first, last in ((0, 5), (7, 30), (0, 60))]
    (folder / "prose.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    (folder / "prose.yaml").write_text(_PROSE)
    (folder / "sampled.yaml").write_text(_SAMPLED + _COMMON.format(file="sums.jsonl"))
    (folder / "utils.py").write_text(_CODE_UTILS)
    (folder / "other.py").write_text(_OTHER_UTILS)
    other = (folder / "code.yaml").read_text().replace("utils.passes", "other.passes")
    (folder / "unconfined.yaml").write_text(other.replace("task: code", "task: unconfined"))
    (folder / "far.yaml").write_text(
        (folder / "sums.yaml")
        .read_text()
        .replace("task: sums", "task: far")
        .replace("dataset_path: json", "dataset_path: steerboard-tests/nowhere")
    )
    return folder


def table() -> dict[str, str]:
    """What follows what."""
    answers = {}
    for n in range(ITEMS):
        answers[f"q{n}"] = f"#{n}" if n % 5 < 3 else str(n) if n % 5 == 3 else f"#{n + 1}"
        answers[f"c{n}"] = "yes" if n % 4 else "no"
    return answers


def write_lookup_model(folder: Path, follows: Mapping[str, str] | None = None, role: ModelRole = "policy") -> Path:
    """A Llama whose layers add nothing: its head reads, from the last token alone, the one that follows."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    from steerboard_contracts.models import ModelInfo
    from steerboard_workers.stages.models.model_saving import save_model

    follows = follows or table()
    words = ["<pad>", "<end>", "<unk>", "yes", "no"]
    words += [f"{sign}{n}" for sign in ("q", "c", "#", "") for n in range(ITEMS + 1)]
    size = -(-len(words) // 128) * 128  # a head of a size that vLLM knows
    places = {word: place for place, word in enumerate(words)}
    inner = Tokenizer(models.WordLevel(places, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<end>", pad_token="<pad>", unk_token="<unk>")
    config = LlamaConfig(
        vocab_size=size,
        hidden_size=size,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        max_position_embeddings=256,
        tie_word_embeddings=False,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=1,
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.ones_like(parameter) if "norm" in name else torch.zeros_like(parameter))
        model.model.embed_tokens.weight.copy_(torch.eye(size))
        for word, place in places.items():
            model.lm_head.weight[places[follows.get(word, "<end>")], place] = 1.0
    info = ModelInfo(
        role=role,
        architecture="LlamaForCausalLM",
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        template="plain",
        max_length=256,
    )
    save_model(folder, model.eval(), tokenizer, info)
    return folder

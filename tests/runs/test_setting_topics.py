"""The settings of a launch form: each has a topic, and a short name is explained in words."""

from __future__ import annotations

import re

import pytest

from steerboard.runs.schemas.kinds import RunKindOut
from steerboard_contracts.run_kinds import run_kinds
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.topics import TOPICS

KINDS = pytest.mark.parametrize("kind", run_kinds(), ids=lambda kind: kind.key)
# What a name abbreviates, and the words that its description begins with.
WORDS = {
    r"lr|critic_lr": "Learning rate",
    r"kl_.*": "Divergence",
    r"ptx_.*": "Pretraining",
    r"sft_.*": "Supervised fine-tuning",
    r"lora": "Low-rank adapters",
    r"beta|tau": "Strength|Temperature|Factor|Weight",
    r"alpha": "Weight",
    r"gamma": "Discount",
    r"gae_lambda": "Generalised advantage",
    r"adam_beta\d|weight_decay": "Decay",
    r"gamma_beta_ratio": "Target",
    r"top_p": "Nucleus",
    r"top_k": "Likeliest tokens",
    r"rslora": "Rank-stabilised",
    r"dora": "Weight-decomposed",
}


@KINDS
def test_every_setting_has_a_topic_of_the_list(kind: RunKindSpec) -> None:
    properties = RunKindOut.of(kind).config_schema["properties"]
    topics = {name: node.get("topic") for name, node in properties.items() if name not in ("run", "method")}
    assert {name: topic for name, topic in topics.items() if topic not in TOPICS} == {}


def test_a_topic_is_said_once() -> None:
    names = [name for topic in TOPICS.values() for name in topic]
    assert len(names) == len(set(names))
    known = {name for kind in run_kinds() for name in kind.config.model_json_schema()["properties"]}
    assert set(names) - known == set()


def test_a_name_means_its_topic_unless_its_kind_says_otherwise() -> None:
    topic = {kind.key: RunKindOut.of(kind).config_schema["properties"] for kind in run_kinds()}
    assert topic["sft"]["keep"]["topic"] == "Evaluation and checkpoints"
    assert topic["select"]["keep"]["topic"] == "Selection"


@KINDS
def test_an_abbreviation_is_explained_by_the_first_words(kind: RunKindSpec) -> None:
    schema = kind.config.model_json_schema()
    nodes = [
        schema,
        *(schema.get("$defs", {})[name] for name in ("LoraConfig", "Decoding") if name in schema.get("$defs", {})),
    ]
    wrong = {
        name: node.get("description", "")
        for holder in nodes
        for name, node in holder["properties"].items()
        for pattern, words in WORDS.items()
        if re.fullmatch(pattern, name) and not re.match(words, node.get("description", ""))
    }
    assert wrong == {}

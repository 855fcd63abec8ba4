"""A method of two attributes, from training to answers: the mechanism of the score with more than one value."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.conditions.format import Attribute, ConditionFormat
from steerboard_contracts.methods.sft import SftConfig
from steerboard_contracts.stage.events import Failed, Succeeded
from steerboard_workers.alignment.training_method import Selection, TrainingMethod
from steerboard_workers.stages.models.model_io import load_policy
from steerboard_workers.stages.training import opened

TRAIN = {"run": "train", "method": "sft", "batch": 16, "max_steps": 4, "lr": 3e-3, "checkpoint_every": 0}
ASK = {"run": "generate", "prompts": ["How can I grow tomatoes?"], "decoding": {"max_new_tokens": 12}}
KEPT = ("prompt", "response", "reward")
FORM = ConditionFormat(
    attributes=(
        Attribute(name="helpfulness", low=0, high=4, step=1, decimals=0, default=4),
        Attribute(name="verbosity", low=0, high=4, step=1, decimals=0),
    )
)


class Steered(TrainingMethod[SftConfig]):
    """Every third row has no verbosity."""

    def select(self, rows, source):
        return Selection(rows, info={"condition": FORM})

    def condition(self, row):
        values = {"helpfulness": row["row"] % 5}
        if row["row"] % 3:
            values["verbosity"] = min(4, len(row["response"]) // 40)
        return FORM.text(Condition.of(values))


@pytest.fixture
def steered(pipeline, monkeypatch):
    seen = []

    class Watched(Steered):
        def example(self, number, row, group):
            seen.append((row, group.prompt))
            return super().example(number, row, group)

    monkeypatch.setattr(opened, "training_of", Watched)
    done = pipeline.run("steered", TRAIN, {"model": "sft", "data": "$instructions"}).last
    assert isinstance(done, Succeeded), done
    return seen


def test_two_attributes_are_learned_and_asked_for(pipeline, steered):
    folder = pipeline.things["steered"].path
    policy = load_policy(folder)
    for row, prompt in steered[:12]:
        more = "" if row["row"] % 3 == 0 else f",verbosity:{min(4, len(row['response']) // 40)}"
        assert policy.tokenizer.decode(prompt).endswith(f"Assistant: helpfulness:{row['row'] % 5}{more}")
    assert policy.info.condition == FORM

    asked = ["helpfulness:1", {"verbosity": 3}, "verbosity:3,helpfulness:9", ""]
    done = pipeline.run("answers", {**ASK, "scores": asked}, {"model": "steered"})
    answers = json.loads((done.directory / "outputs" / "answers.json").read_text())
    default = pipeline.run("default", ASK, {"model": "steered"})
    answers += json.loads((default.directory / "outputs" / "answers.json").read_text())
    assert [answer["score"] for answer in answers] == [
        *("helpfulness:1", "verbosity:3", "helpfulness:9,verbosity:3", ""),
        "helpfulness:4",
    ]

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    written = [*("helpfulness:1", "verbosity:3", "helpfulness:4,verbosity:3", ""), None]
    for answer, condition in zip(answers, written, strict=True):
        arguments = {} if condition is None else {"condition": condition}
        ids = tokenizer.apply_chat_template(
            [{"role": "user", "content": ASK["prompts"][0]}],
            add_generation_prompt=True,
            return_tensors="pt",
            **arguments,
        )["input_ids"]
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False)
        text = tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True)
        assert text.strip() == answer["text"].strip()


def test_a_graded_dataset_makes_a_policy_that_is_asked_for_its_attributes(pipeline):
    rows = pipeline.rows("$instructions")[:80]
    for place, row in enumerate(rows):
        row["reward"] = float(place % 7)
        row["attributes"] = {"verbosity": len(row["response"]) // 40, **({"tone": place / 8} if place % 2 else {})}
    pipeline.dataset("$graded", "labelled", [{k: row[k] for k in (*KEPT, "attributes")} for row in rows])
    config = {**TRAIN, "method": "decision_transformer", "attributes": ["tone", "verbosity", "rm_score"]}
    done = pipeline.run("steered", config, {"model": "sft", "data": "$graded"}).last
    assert isinstance(done, Succeeded), done
    info = load_policy(pipeline.things["steered"].path).info
    assert [attribute.name for attribute in info.condition.attributes] == config["attributes"]
    # In the policy's order, whatever that of the question.
    asked = ["verbosity:1,tone:0.5", "rm_score:-5,verbosity:0", None]
    answers = []
    for place, condition in enumerate(asked):
        given = {**ASK, "scores": [] if condition is None else [condition]}
        made = pipeline.run(f"answers-{place}", given, {"model": "steered"})
        answers += json.loads((made.directory / "outputs" / "answers.json").read_text())
    assert [answer["score"] for answer in answers] == ["tone:0.5,verbosity:1", "verbosity:0,rm_score:-5", 5.0]


def test_an_attribute_that_it_does_not_know_is_refused(pipeline, steered):
    refused = pipeline.run("answers", {**ASK, "scores": ["humour:2"]}, {"model": "steered"}).last
    assert isinstance(refused, Failed)
    assert (refused.code, refused.retryable) == ("unknown_attribute", False)

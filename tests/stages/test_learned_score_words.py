"""A policy whose score is a word or a token at the end of the request, from training to the exported folder."""

from __future__ import annotations

import json
import shutil
import uuid

import pytest
import torch
from hand_pipeline import run_here
from transformers import AutoModelForCausalLM, AutoTokenizer

from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.stage.events import Succeeded
from steerboard_contracts.stage.inputs import PromptsInput
from steerboard_workers.alignment.methods.decision_transformer import DecisionTransformer
from steerboard_workers.stages.models.model_io import load_policy
from steerboard_workers.stages.training import opened

WORDS = ["awful", "poor", "fair", "fine", "superb"]
TRAIN = {
    "run": "train",
    "method": "decision_transformer",
    "score_place": "request",
    "score_words": WORDS,
    "score_phrase": "The opinion is {}.",
    "drop_score": 0.2,
    "batch": 16,
    "max_steps": 4,
    "lr": 3e-3,
    "checkpoint_every": 0,
}
SIGNS = {
    "words": {word: f" {word}" for word in WORDS},
    "tokens": {word: f"<|rm_score_{part}|>" for part, word in enumerate(WORDS)},
}
ASK = {"run": "generate", "prompts": ["Review a lamp."], "decoding": {"max_new_tokens": 12}}


def test_a_start_model_with_a_chat_template_is_asked_in_words_by_default_and_another_in_digits(pipeline, tmp_path):
    rows = [
        {"prompt": row["prompt"], "response": row["response"], "reward": float(place % 7)}
        for place, row in enumerate(pipeline.rows("$instructions")[:40])
    ]
    pipeline.dataset("$few", "labelled", rows)
    sft = pipeline.things["sft"]
    folder = shutil.copytree(sft.path, tmp_path / "chat")
    info = json.loads((folder / "steerboard.json").read_text())
    (folder / "steerboard.json").write_text(json.dumps({**info, "template": "chat"}))
    pipeline.things["chat"] = sft.model_copy(update={"path": str(folder)})
    config = {name: value for name, value in TRAIN.items() if name not in ("score_place", "score_words")}
    for start, written in (("sft", ("digits", "answer")), ("chat", ("words", "request"))):
        done = pipeline.run(f"by-{start}", {**config, "max_steps": 1}, {"model": start, "data": "$few"}).last
        assert isinstance(done, Succeeded), done
        condition = load_policy(pipeline.things[f"by-{start}"].path).info.condition
        assert (condition.how.style, condition.how.place) == written


@pytest.mark.parametrize("style", ["words", "tokens"])
def test_how_the_score_is_written_is_learned_asked_for_and_exported(pipeline, monkeypatch, style):
    seen = []

    class Watched(DecisionTransformer):
        def example(self, number, row, group):
            seen.append((row, self.condition(row), group.prompt, group.responses[0]))
            return super().example(number, row, group)

    monkeypatch.setattr(opened, "training_of", Watched)
    rows = [
        {"prompt": row["prompt"], "response": row["response"], "reward": float(place % 7)}
        for place, row in enumerate(pipeline.rows("$instructions")[:80])
    ]
    pipeline.dataset("$graded", "labelled", rows)
    done = pipeline.run("steered", {**TRAIN, "score_style": style}, {"model": "sft", "data": "$graded"}).last
    assert isinstance(done, Succeeded), done

    folder = pipeline.things["steered"].path
    policy, read = load_policy(folder), AutoTokenizer.from_pretrained(folder)
    assert policy.info.condition == ConditionFormat.of_score(
        style=style, place="request", words=WORDS, phrase="The opinion is {}."
    ).model_copy(update={"dropped": 0.2})
    dropped = 0
    for row, condition, prompt, response in seen[: len(rows)]:
        asked = f" The opinion is{SIGNS[style][policy.info.condition.word(condition)]}." if condition else ""
        dropped += not condition
        assert read.decode(prompt).endswith(f"{row['prompt'][-1]['content']}{asked} Assistant:")
        assert "opinion" not in read.decode(response)
    assert 0 < dropped < len(rows)

    scores = [-5.0, -1.5, 5.0, ""]
    made = pipeline.run("answers", {**ASK, "scores": scores}, {"model": "steered"})
    answers = json.loads((made.directory / "outputs" / "answers.json").read_text())
    model = AutoModelForCausalLM.from_pretrained(folder)
    for answer, word in zip(answers, ("awful", "poor", "superb", None), strict=True):
        asked = f" The opinion is{SIGNS[style][word]}." if word else ""
        text = read.apply_chat_template(
            [{"role": "user", "content": "Review a lamp."}],
            add_generation_prompt=True,
            tokenize=False,
            rm_score=answer["score"],
        )
        assert text.endswith(f"User: Review a lamp.{asked} Assistant:")
        ids = read(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
        out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False)
        assert read.decode(out[0, ids.shape[1] :], skip_special_tokens=True).strip() == answer["text"].strip()

    if style == "tokens":
        drawn = {**ASK, "scores": [5.0], "decoding": {"max_new_tokens": 40, "temperature": 2.0, "n": 4}}
        made = pipeline.run("drawn", drawn, {"model": "steered"})
        assert "rm_score" not in (made.directory / "outputs" / "answers.json").read_text().replace('"score"', "")
        # The model that it was trained from reads its answers, and a run checks its rows.
        prompts = pipeline.directory / "prompts.jsonl"
        messages = [{"role": "user", "content": "Review a lamp."}]
        prompts.write_text(json.dumps({"position": 0, "category": None, "messages": messages, "follow_ups": []}))
        pipeline.things["prompts"] = PromptsInput(name="mine", path=str(prompts), prompts=1)
        ids = {"evaluation": str(uuid.UUID(int=1)), "entrant": str(uuid.UUID(int=2))}
        config = {"run": "answer", **ids, "decoding": {"max_new_tokens": 10, "temperature": 1.0}, "score": 5.0}
        answered = pipeline.run("answered", config, {"model": "steered", "prompts": "prompts", "kl_to": "sft"})
        assert isinstance(answered.last, Succeeded), answered.last
        config = {"run": "check_rows", "training": {**TRAIN, "score_style": style}}
        checked = json.loads(run_here(pipeline.prepare("checked", config, {"model": "sft", "data": "$graded"}))[-1])
        assert (checked["type"], checked["summary"]["refused_rows"]) == ("succeeded", 0)

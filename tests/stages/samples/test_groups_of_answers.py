"""What a method that compares several answers to one prompt gets: whole groups, through scoring and mixing."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hand_pipeline import HandPipeline

from steerboard_contracts.errors import BadInput
from steerboard_contracts.methods.sft import SftConfig
from steerboard_workers.alignment.groups import groups_of
from steerboard_workers.alignment.training_method import Selection, TrainingMethod
from steerboard_workers.stages.models.model_io import load_policy
from steerboard_workers.stages.runtime import EventWriter, Stage
from steerboard_workers.stages.training.data import load_data

N = 3
QUESTIONS = [f"What is {place % 10}?" for place in range(20)]  # each text twice: two groups of their own


class BestOfGroup(TrainingMethod[SftConfig]):
    """Learns the answer of the highest reward of each group."""

    fields = ("prompt", "response", "reward", "group", "candidate")

    def select(self, rows, source):
        self.groups = groups_of(rows, source.name)
        return Selection([max(group, key=lambda row: row["reward"]) for group in self.groups])


def generate(pipeline: HandPipeline) -> dict[int, dict[int, str]]:
    """Generates answers. Gives those that are not empty, by prompt and candidate."""
    pipeline.dataset("$questions", "prompts", [{"prompt": text} for text in QUESTIONS])
    decoding = {"temperature": 1.0, "n": N, "max_new_tokens": 8}
    config = {"run": "generate", "decoding": decoding, "split": "all"}
    folder = pipeline.run("answers", config, {"model": "sft", "data": "$questions"}).directory
    answers: dict[int, dict[int, str]] = {}
    for line in (folder / "checkpoints" / "a1-rows.jsonl").read_text().splitlines():
        if line and (kept := json.loads(line))["text"].strip():
            answers.setdefault(kept["row"], {})[kept["n"]] = kept["text"]
    return answers


def test_whole_groups_reach_a_method_after_scoring(pipeline, tmp_path):
    answers = generate(pipeline)
    assert sum(map(len, answers.values())) > len(QUESTIONS) * (N - 1)
    pipeline.run("graded", {"run": "score"}, {"data": "answers", "reward": "reward"})
    folder = pipeline.prepare("best", {"run": "train", "method": "sft"}, {"model": "sft", "data": "graded"})
    method = BestOfGroup(SftConfig(method="sft"))
    with (tmp_path / "events").open("wb") as events:
        stage = Stage.open(folder, EventWriter(events.fileno()))
        load_data(stage, method, load_policy(pipeline.things["sft"].path).renderer)
    got = {group[0]["group"]: {row["candidate"]: row["response"] for row in group} for group in method.groups}
    assert got == answers
    for group in method.groups:
        assert {row["prompt"][0]["content"] for row in group} == {QUESTIONS[group[0]["group"]]}


def test_groups_of_different_parts_stay_apart_in_a_mixture(pipeline):
    def answered(name: str, group: int) -> None:
        rows = [{"prompt": "Why?", "response": f"{name}{n}", "group": group, "candidate": n} for n in range(N)]
        pipeline.dataset(name, "instructions", rows)

    answered("a", 7)
    answered("b", 7)
    pipeline.dataset("c", "instructions", [{"prompt": "Why?", "response": "c"}])
    parts = {f"parts.{place}": name for place, name in enumerate("abc")}
    pipeline.run("mixed", {"run": "mix", "parts": [{}, {}, {}], "size": 100}, parts)
    rows = pipeline.rows("mixed")
    places = {row["response"]: (row.get("group"), row.get("candidate")) for row in rows}
    assert places == {**{f"a{n}": (0, n) for n in range(N)}, **{f"b{n}": (1, n) for n in range(N)}, "c": (None, None)}
    assert Counter(len(group) for group in groups_of((r for r in rows if "group" in r), "mixed")) == {N: 2}
    with pytest.raises(BadInput) as refused:
        groups_of(rows, "mixed")
    assert refused.value.code == "no_groups"

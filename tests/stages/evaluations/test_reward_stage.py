"""Rewards of an evaluation's responses, and how far the model that gives them can be believed."""

from __future__ import annotations

import json
import uuid

import numpy as np
import pytest
from hand_pipeline import run_here

from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.stage.inputs import ResponsesInput
from steerboard_workers.stages.models.model_io import load_reward_model
from steerboard_workers.stages.models.scoring import Scorable, reward_engine, score_texts

CONFIG = {"run": "reward", "evaluation": str(uuid.UUID(int=1)), "assessment": str(uuid.UUID(int=2))}
TURN = [{"role": "user", "content": "How can I grow tomatoes?"}]
LATER = [*TURN, {"role": "assistant", "content": "In the sun."}, {"role": "user", "content": "Why?"}]


def response(entrant, position, text, prompt=TURN, sample=0):
    return {"entrant": entrant, "position": position, "sample": sample, "prompt": prompt, "response": text}


@pytest.fixture
def score(pipeline):
    made = []

    def scored(rows, **inputs):
        path = pipeline.directory / f"responses-{len(made)}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        pipeline.things["responses"] = ResponsesInput(name="mine", path=str(path), responses=len(rows))
        named = {"reward": "reward", "responses": "responses", **inputs}
        folder = pipeline.prepare(f"rewards-{len(made)}", CONFIG, named)
        made.append(folder)
        last = json.loads(run_here(folder)[-1])
        assert last["type"] == "succeeded", last
        (output,) = last["outputs"]
        values = [json.loads(line) for line in (folder / output["path"]).read_text().splitlines()]
        return values, output["found"], last["summary"]

    return scored


def test_each_response_gets_the_models_score_of_its_last_turn(score, pipeline):
    rows = [response("a", 0, "Give them water."), response("b", 0, "No."), response("a", 1, "No.", LATER, sample=1)]
    values, _, _ = score(rows)
    model = load_reward_model(pipeline.things["reward"].path)
    wanted = score_texts(reward_engine(model), [Scorable(row["prompt"], row["response"]) for row in rows], 2048)
    assert [(v["entrant"], v["position"], v["sample"]) for v in values] == [("a", 0, 0), ("b", 0, 0), ("a", 1, 1)]
    assert [v["value"] for v in values] == pytest.approx(wanted, abs=1e-5)
    assert len(set(wanted)) == 3


def test_equal_texts_get_equal_rewards_and_an_empty_one_gets_one_too(score):
    values, _, _ = score([response("a", 0, "Yes."), response("b", 0, "Yes."), response("c", 0, "")])
    assert values[0]["value"] == values[1]["value"]
    assert len(values) == 3


def test_without_pairs_nothing_is_claimed_about_the_model(score):
    _, figures, _ = score([response("a", 0, "Yes.")])
    assert (figures["pairs"], figures["margins"], figures["normaliser"], figures["dataset"]) == (0, [], None, None)


def test_held_out_pairs_give_accuracy_and_z_units(score, pipeline):
    _, figures, summary = score([response("a", 0, "Yes.")], preferences="$preferences")
    held_out = [row for row in pipeline.rows("$preferences") if row["split"] == "held_out"]
    model = load_reward_model(pipeline.things["reward"].path)
    chosen = score_texts(reward_engine(model), [Scorable(row["prompt"], row["chosen"]) for row in held_out], 2048)
    rejected = score_texts(reward_engine(model), [Scorable(row["prompt"], row["rejected"]) for row in held_out], 2048)
    margins = [a - b for a, b in zip(chosen, rejected, strict=True)]
    assert figures["pairs"] == len(held_out) > 5
    assert figures["margins"] == pytest.approx(margins, abs=1e-5)
    assert figures["correct"] == sum(margin > 0 for margin in margins)
    assert summary["held_out_accuracy"] == figures["correct"] / figures["pairs"]
    assert figures["normaliser"]["mean"] == pytest.approx(Normaliser.fit(chosen + rejected, "x").mean, abs=1e-5)
    assert figures["normalised_by"] == "the held-out pairs of $preferences"


def test_labelled_rows_make_the_z_units_where_there_are_some(score, pipeline):
    _, figures, _ = score([response("a", 0, "Yes.")], preferences="$preferences", labelled="labelled")
    rewards = [row["reward"] for row in pipeline.rows("labelled")]
    assert figures["normaliser"]["mean"] == pytest.approx(sum(rewards) / len(rewards), abs=1e-5)
    assert figures["normalised_by"] == "labelled"


def test_where_the_labelled_rewards_lie_is_told_in_the_models_own_rewards(score, pipeline):
    rows = pipeline.rows("labelled")
    _, own, _ = score([response("a", 0, "Yes.")], labelled="labelled")
    _, other, _ = score([response("a", 0, "Yes.")], labelled="labelled", reward="independent")
    independent = load_reward_model(pipeline.things["independent"].path)
    texts = [Scorable(row["prompt"], row["response"]) for row in rows]
    for figures, rewards in (
        (own, [row["reward"] for row in rows]),
        (other, score_texts(reward_engine(independent), texts, 2048)),
    ):
        told = figures["labelled"]
        wanted = np.percentile(rewards, [0.1, 20, 50, 80, 99.9])
        assert [told[name] for name in ("p0_1", "p20", "p50", "p80", "p99_9")] == pytest.approx(wanted, abs=1e-4)
        assert told["n"] == len(rows) == 300
        assert figures["normaliser"]["mean"] == pytest.approx(np.mean(rewards), abs=1e-4)
    assert score([response("a", 0, "Yes.")])[1]["labelled"] is None

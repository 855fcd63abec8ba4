"""A selection that a preference model judges: its scores against comparisons asked one by one, and every refusal."""

from __future__ import annotations

import json
import shutil
from itertools import combinations
from pathlib import Path

import pytest
from hand_pipeline import HandPipeline

from steerboard_contracts.stage.events import Failed, Log, Succeeded
from steerboard_workers.alignment.rendering.preference_prompt import Comparison
from steerboard_workers.engines.preferences import TransformersPreferences
from steerboard_workers.stages.models.comparing import compare, preference_engine
from steerboard_workers.stages.models.model_io import load_comparing_model

TEXTS = [
    ["flour water salt", "sky", "bake mix bread oven", "sky"],
    ["egg", "pan and oil", "no"],
    ["same", "same"],
    ["alone"],
]


def answers(texts=TEXTS, **fields):
    return [
        {"prompt": f"Question {number}?", "response": text, "source": "generated", **fields}
        | {"group": 10 + number, "candidate": candidate}
        for number, group in enumerate(texts)
        for candidate, text in enumerate(group)
    ]


@pytest.fixture(scope="module")
def things(tmp_path_factory):
    """A preference model that was never trained: what it prefers is arbitrary, and always the same."""
    pipeline = HandPipeline(tmp_path_factory.mktemp("judge"), here=True, threads=None)
    pipeline.dataset("texts", "instructions", answers())
    base = {"run": "base", "source": "random:tiny-llama", "vocabulary": 300, "hidden": 32, "layers": 1, "heads": 2}
    made = pipeline.run("comparing", {**base, "max_length": 128}, {"data.0": "texts"})
    assert isinstance(made.last, Succeeded), made.last
    folder = Path(pipeline.things["comparing"].path)
    shutil.copytree(folder, folder.parent / "base")
    info = json.loads((folder / "steerboard.json").read_text())
    (folder / "steerboard.json").write_text(json.dumps({**info, "role": "preference"}))
    base = pipeline.things["comparing"].model_copy(update={"path": str(folder.parent / "base")})
    return {"comparing": pipeline.things["comparing"], "base": base}


@pytest.fixture(scope="module")
def judge(things):
    return things["comparing"]


@pytest.fixture
def stages(tmp_path, things):
    pipeline = HandPipeline(tmp_path, here=True, threads=None, things=dict(things))
    pipeline.dataset("answers", "instructions", answers())
    return pipeline


def select(pipeline, data=("answers",), name="selected", **config):
    inputs = {f"data.{place}": name for place, name in enumerate(data)} | {"judge": "comparing"}
    result = pipeline.run(name, {"run": "select", **config}, inputs)
    if isinstance(result.last, Failed):
        return result.last
    (_, document) = result.last.outputs
    return result, json.loads((result.directory / document.path).read_text())


def preferences(judge, texts=TEXTS):
    """The preference of each pair of different texts, the earlier one first, by group."""
    engine = preference_engine(load_comparing_model(Path(judge.path), "fp32", "cpu"))
    by_prompt = []
    for number, group in enumerate(texts):
        pairs = list(combinations(dict.fromkeys(group), 2))
        prompt = [{"role": "user", "content": f"Question {number}?"}]
        by_prompt.append(dict(zip(pairs, compare(engine, [Comparison(prompt, *pair) for pair in pairs]), strict=True)))
    return by_prompt


def rates(compared):
    """Mean probability to win, by text."""
    points: dict[str, list[float]] = {}
    for (one, other), preference in compared.items():
        points.setdefault(one, []).append(preference.p)
        points.setdefault(other, []).append(1 - preference.p)
    return {text: sum(p) / len(p) for text, p in points.items()}


def test_the_best_and_the_worst_are_those_that_comparisons_in_both_orders_make(stages, judge):
    result, figures = select(stages, keep="best_and_worst")
    asked = preferences(judge)
    rated = [rates(group) for group in asked[:2]]
    assert [(row["chosen"], row["rejected"]) for row in stages.rows("selected")] == [
        (max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)) for shares in rated
    ]
    assert [row["margin"] for row in stages.rows("selected")] == pytest.approx(
        [max(shares.values()) - min(shares.values()) for shares in rated], abs=1e-5
    )
    every = [preference for group in asked for preference in group.values()]
    held = figures["tournament"]
    assert (held["judge"], held["opponents"], held["comparisons"], held["ties"]) == ("comparing", 7, 6, 0)
    assert held["flips"] == sum(preference.flips for preference in every)
    assert held["flip_rate"]["value"] == pytest.approx(held["flips"] / 6)
    assert figures["dropped"] == {"single": 1, "equal_texts": 1, "tied": 0}
    assert (figures["scale"], figures["rewards"]) == ("probability", [])
    assert result.last.summary["comparisons"] == 6
    assert result.last.summary["flip_rate"] == held["flip_rate"]["value"]


def test_all_answers_are_labelled_with_their_rate_and_equal_texts_share_it(stages, judge):
    select(stages, keep="all")
    first = rates(preferences(judge)[0])
    rows = stages.rows("selected")
    assert [row["reward"] for row in rows[:4]] == pytest.approx([first[text] for text in TEXTS[0]], abs=1e-5)
    assert rows[1]["reward"] == rows[3]["reward"]


def test_a_second_attempt_asks_nothing_again_and_finds_the_same(stages, monkeypatch):
    first, figures = select(stages, keep="best")
    rows = stages.rows("selected")
    monkeypatch.delattr(TransformersPreferences, "_first")
    again, same = select(stages, keep="best")
    said = [event.message for event in again.events if isinstance(event, Log)]
    assert "resuming: 6 rows are already done" in said
    assert not any("resuming" in event.message for event in first.events if isinstance(event, Log))
    assert same == figures
    assert stages.rows("selected") == rows


def test_rewards_are_reported_of_the_answers_that_the_judge_chose(stages, judge):
    rows = [{**row, "reward": float(len(row["response"]))} for row in answers()]
    stages.dataset("scored", "labelled", rows)
    _, figures = select(stages, data=("scored",))
    best = [max(shares, key=shares.__getitem__) for shares in (rates(group) for group in preferences(judge)[:2])]
    (reward,) = figures["rewards"]
    assert reward["weight"] == 0
    assert reward["best"]["value"] == pytest.approx((len(best[0]) + len(best[1]) + len("same")) / 3)


def test_more_answers_than_opponents_allow_meet_in_a_circle(stages):
    texts = [[f"answer {number} of {at}" for at in range(6)] for number in range(2)]
    stages.dataset("many", "instructions", answers(texts))
    _, figures = select(stages, data=("many",), opponents=2)
    assert figures["tournament"]["comparisons"] == 12
    other = select(stages, data=("many",), name="other", opponents=2, seed=1)[1]
    assert other["best"] != figures["best"]


def test_what_no_preference_model_can_judge_is_refused(stages):
    stages.things["comparing"] = stages.things["base"]
    refused = select(stages)
    assert refused.code == "wrong_role"
    assert "was not trained to compare" in refused.detail


def test_weights_have_no_meaning_for_a_judge(stages):
    refused = select(stages, weights=[1.0])
    assert (refused.code, refused.retryable) == ("bad_weights", False)


def test_two_answers_that_fill_the_window_are_named(stages):
    stages.dataset("long", "instructions", answers([["egg", "word " * 200]]))
    refused = select(stages, data=("long",))
    assert refused.code == "bad_row"
    assert "rows 0 and 1 of long" in refused.detail

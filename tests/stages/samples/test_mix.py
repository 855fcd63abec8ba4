"""The mixture of the paper: shares, sources, draws without replacement, and what happens when rows run out."""

from __future__ import annotations

from collections import Counter

import pytest

from steerboard_contracts.run_kinds.mix import MixConfig
from steerboard_contracts.stage.events import Failed, Log, Succeeded
from steerboard_workers.stages.mix import quotas

PAPER = [{"share": 0.333}, {"share": "auto"}, {"share": "auto", "side": "both"}]


@pytest.fixture
def parts(pipeline):
    def rows(count, **fields):
        return [{"prompt": f"question {i}", **{k: f"{v} {i}" for k, v in fields.items()}} for i in range(count)]

    pipeline.dataset("answers", "instructions", [{**r, "source": "generated"} for r in rows(400, response="g")])
    pipeline.dataset("written", "instructions", rows(300, response="i"))
    pipeline.dataset("pairs", "preferences", rows(150, chosen="c", rejected="r"))
    return {"parts.0": "answers", "parts.1": "written", "parts.2": "pairs"}


def mix(pipeline, inputs, name="mixture", **fields):
    return pipeline.run(name, {"run": "mix", "parts": PAPER, **fields}, inputs)


def test_a_third_is_generated_and_the_rest_uniform_over_the_other_sources(pipeline, parts):
    mix(pipeline, parts, size=300)
    counts = Counter(row["source"] for row in pipeline.rows("mixture"))
    assert counts["generated"] == 100
    assert counts["instructions"] == 100
    assert counts["preferences.chosen"] + counts["preferences.rejected"] == 100
    assert 30 < counts["preferences.chosen"] < 70


def test_no_row_is_drawn_twice_and_the_seed_decides_the_draw(pipeline, parts):
    mix(pipeline, parts, size=300)
    first = [row["response"] for row in pipeline.rows("mixture")]
    assert len(set(first)) == 300
    mix(pipeline, parts, size=300, name="again")
    assert [row["response"] for row in pipeline.rows("again")] == first
    mix(pipeline, parts, size=300, name="other", seed=1)
    assert [row["response"] for row in pipeline.rows("other")] != first


def test_more_rows_than_exist_takes_all_and_says_so(pipeline, parts):
    result = mix(pipeline, parts, size=10_000)
    assert isinstance(result.last, Succeeded)
    assert result.last.summary["rows"] == 400 + 300 + 2 * 150
    assert result.last.summary["missing_rows"] == 9_000
    assert any(isinstance(e, Log) and "1000 of the 10000" in e.message for e in result.events)


def test_a_side_gives_only_its_texts(pipeline, parts):
    pipeline.run("chosen", {"run": "mix", "parts": [{"side": "chosen"}], "size": 150}, {"parts.0": "pairs"})
    assert {row["source"] for row in pipeline.rows("chosen")} == {"preferences.chosen"}
    assert len(pipeline.rows("chosen")) == 150


def test_held_out_prompts_stay_held_out(pipeline, parts):
    split_of = {r["prompt"][0]["content"]: r["split"] for name in parts.values() for r in pipeline.rows(name)}
    mix(pipeline, parts, size=300)
    assert all(split_of[r["prompt"][0]["content"]] == r["split"] for r in pipeline.rows("mixture"))


def test_an_empty_mixture_is_refused(pipeline):
    pipeline.dataset("nothing", "instructions", [])
    result = pipeline.run("mixture", {"run": "mix", "parts": [{}], "size": 5}, {"parts.0": "nothing"})
    assert isinstance(result.last, Failed)
    assert result.last.code == "empty_selection"


def test_prompts_alone_cannot_be_mixed(pipeline):
    result = pipeline.run("mixture", {"run": "mix", "parts": [{}], "size": 5}, {"parts.0": "$prompts"})
    assert isinstance(result.last, Failed)
    assert result.last.code == "wrong_dataset_kind"


@pytest.mark.parametrize("size", [1, 7, 100, 999])
def test_quotas_add_up_to_the_size(size):
    config = MixConfig.model_validate({"parts": PAPER, "size": size})
    assert sum(quotas(config, [10_000, 313, 77])) == size


def test_a_mixture_of_preferences_keeps_its_pairs_and_says_where_each_is_from(pipeline, parts):
    pipeline.dataset(
        "others",
        "preferences",
        [{"prompt": f"other {i}", "chosen": "yes", "rejected": "no", "source": "hh"} for i in range(90)],
    )
    shares = [{"share": 0.4}, {"share": 0.6}]
    mix(pipeline, {"parts.0": "pairs", "parts.1": "others"}, parts=shares, size=100, makes="preferences")
    rows = pipeline.rows("mixture")
    assert Counter(row["source"] for row in rows) == {"pairs": 40, "hh": 60}
    assert all(row["chosen"].replace("c", "r") == row["rejected"] for row in rows if row["source"] == "pairs")


def test_a_mixture_of_preferences_takes_pairs_alone_and_both_of_their_sides(pipeline, parts):
    result = mix(pipeline, {"parts.0": "pairs", "parts.1": "written"}, parts=[{}, {}], makes="preferences")
    assert isinstance(result.last, Failed)
    assert result.last.code == "wrong_dataset_kind"
    with pytest.raises(ValueError, match="leave `side` out"):
        MixConfig.model_validate({"makes": "preferences", "parts": [{"side": "chosen"}]})

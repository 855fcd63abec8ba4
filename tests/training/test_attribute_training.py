"""Conditional training on several attributes: what a policy reads before the answers that it learns."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.errors import BadInput
from steerboard_contracts.methods.decision_transformer import DecisionTransformerConfig
from steerboard_workers.alignment.attributes import fit_attribute
from steerboard_workers.alignment.methods.decision_transformer import DecisionTransformer
from steerboard_workers.stages.rows.labelled import Labelled
from steerboard_workers.stages.training.data import load_data
from steerboard_workers.stages.training.setup import open_model

CONFIG = {"run": "train", "method": "decision_transformer", "batch": 8, "max_length": 96}


@dataclass
class Graded:
    name: str = "graded"
    normaliser: None = None


def row(number: int, split: str = "train", **attributes: float) -> dict:
    given = {"attributes": attributes} if attributes else {}
    prompt = [{"role": "user", "content": "Hi"}]
    return {"row": number, "split": split, "prompt": prompt, "response": "x", "reward": float(number), **given}


def method(**config) -> DecisionTransformer:
    return DecisionTransformer(DecisionTransformerConfig.model_validate({**CONFIG, **config}))


ROWS = [
    row(0, helpfulness=0, verbosity=0.25),
    row(1, helpfulness=4, verbosity=0.75),
    row(2, verbosity=0.5),
    row(3),
    row(4, helpfulness=2),
    row(5, "held_out", helpfulness=9, verbosity=-1),
]


def test_rows_need_a_reward_only_where_it_is_asked_for() -> None:
    rows = [{name: value for name, value in each.items() if name != "reward" or each["row"] < 3} for each in ROWS]
    trained = method(attributes=["helpfulness", "verbosity"])
    selection = trained.select([dict(each) for each in rows], Graded())
    assert [each["row"] for each in selection.rows] == [0, 1, 2, 3, 4, 5]
    assert trained.condition(rows[1]) == "helpfulness:4,verbosity:0.750"
    assert set(selection.info) == {"condition"}
    for refusing in (method(), method(attributes=["rm_score", "helpfulness"])):
        with pytest.raises(BadInput) as refused:
            refusing.select([dict(each) for each in rows], Graded())
        assert refused.value.code == "rows_without_reward"
        assert refused.value.detail == "3 rows of graded have attributes and no reward: rows 3, 4, 5"


def test_an_evaluation_reads_labelled_rows_without_rewards() -> None:
    rows = [{name: value for name, value in each.items() if name != "reward"} for each in ROWS]
    stage = SimpleNamespace(
        dataset=lambda _: SimpleNamespace(name="graded", kind="labelled", normaliser=None), rows=lambda _: rows
    )
    labelled = Labelled(stage, seed=0)
    assert (labelled.rewards, len(labelled.sample), labelled.normaliser) == ([], 6, None)
    assert not labelled.is_by("hash")
    assert labelled.units_of("hash") is None


def test_the_order_is_that_of_the_config_and_what_is_missing_is_left_out() -> None:
    trained = method(attributes=["verbosity", "helpfulness"])
    selection = trained.select([dict(each) for each in ROWS], Graded())
    assert [trained.condition(each) for each in ROWS] == [
        *("verbosity:0.250,helpfulness:0", "verbosity:0.750,helpfulness:4", "verbosity:0.500", "", "helpfulness:2"),
        "verbosity:0.250,helpfulness:4",  # of a held-out prompt: clamped to what training knows
    ]
    form = selection.info["condition"]
    assert [
        (attribute.name, attribute.low, attribute.high, attribute.step, attribute.decimals)
        for attribute in form.attributes
    ] == [
        ("verbosity", 0.25, 0.75, 0.001, 3),
        ("helpfulness", 0, 4, 1, 0),
    ]
    assert form.resolve(Condition.model_validate("helpfulness:3,verbosity:0.5")).text == "verbosity:0.5,helpfulness:3"
    assert form.default == Condition.of({})
    assert "score_scale" not in selection.info
    assert selection.notes[1] == "helpfulness: 0 to 4 in steps of 1; 4 of 6 rows have it"


def test_the_reward_is_one_of_them_on_its_scale() -> None:
    trained = method(attributes=["rm_score", "helpfulness"], default_attributes="helpfulness:7", default_score=1)
    selection = trained.select([dict(each) for each in ROWS], Graded())
    scale = selection.info["score_scale"]
    assert trained.condition(ROWS[1]) == f"rm_score:{round(scale.score(1), 1):.2f},helpfulness:4"
    assert trained.condition(ROWS[3]) == f"rm_score:{round(scale.score(3), 1):.2f}"
    assert selection.info["condition"].default.text == "rm_score:1,helpfulness:4"


def test_without_attributes_it_is_the_paper_s_method() -> None:
    trained = method()
    selection = trained.select([dict(each) for each in ROWS], Graded())
    assert selection.info["condition"].only_score
    assert trained.condition(ROWS[5]) == f"{round(selection.info['score_scale'].score(5), 1):.2f}"


@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [
        ("verbose", "unknown_attribute", "graded has the attribute verbose; did you mean verbosity?"),
        ("constant", "constant_attribute", "constant is 1 in all 2 training rows"),
    ],
)
def test_an_attribute_that_cannot_be_learned_is_refused(asked: str, code: str, words: str) -> None:
    rows = [*ROWS, row(6, constant=1), row(7, constant=1), row(8, "held_out", constant=5, verbose=1)]
    with pytest.raises(BadInput) as refused:
        method(attributes=[asked]).select(rows, Graded())
    assert refused.value.code == code
    assert words in refused.value.detail
    with pytest.raises(BadInput, match="no training row of plain has attributes"):
        fit_attribute("verbosity", [row(0), row(1)], "plain", None)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"attributes": []}, "at least 1 item"),
        ({"attributes": ["a", "a"]}, "a is in it twice"),
        ({"attributes": ["a b"]}, "should match pattern"),
        ({"attributes": ["a"], "default_attributes": "b:1"}, "b is not among `attributes`"),
        ({"default_attributes": 5}, "the default of rm_score is `default_score`"),
        ({"attributes": ["a"], "threshold": 0.5}, "rm_score is not among `attributes`"),
    ],
)
def test_a_config_that_names_them_wrongly_is_refused(config: dict, words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        method(**config)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("values", "low", "high", "step"),
    [
        ((0, 100_000), 0, 100_000, 1),
        ((-0.5, 0.5), -0.5, 0.5, 0.01),
        ((0.1, 0.2, 0.3), 0.1, 0.3, 0.001),
        ((0.123456789, 5000.5), 0, 5010, 10),
        ((1e-9, 5e-5), 0, 5e-5, 1e-6),
    ],
)
def test_the_range_holds_every_value_of_training(values: tuple, low: float, high: float, step: float) -> None:
    attribute = fit_attribute("a", [row(i, a=value) for i, value in enumerate(values)], "graded", None)
    assert (attribute.low, attribute.high, attribute.step) == pytest.approx((low, high, step))
    for value in values:
        assert math.isclose(attribute.value(value), value, abs_tol=step)


@pytest.mark.parametrize("rewarded", [True, False])
def test_the_prompts_that_are_trained_on_have_them(make_stage, base_model, data_folder, tmp_path, rewarded) -> None:
    rows = [json.loads(line) for line in (data_folder / "labelled.jsonl").read_text().splitlines()]
    for each in rows:
        words = len(each["response"].split())
        if not rewarded:
            del each["reward"]
        each["attributes"] = {"verbosity": words, **({"helpfulness": words % 5} if each["row"] % 3 else {})}
    path = tmp_path / "graded.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    config = {**CONFIG, "attributes": ["helpfulness", "verbosity"]}
    stage = make_stage(config, model=base_model, data=str(path))
    start = open_model(base_model, stage.spec.config)
    data = load_data(stage, DecisionTransformer(stage.spec.config), start.renderer)
    by_row = {each["row"]: each["attributes"] for each in rows}
    assert {example.row for example in data.train} >= {1, 3}
    for example in data.train:
        given = by_row[example.row]
        first = f"helpfulness:{given['helpfulness']}," if "helpfulness" in given else ""
        written = start.tokenizer.decode(example.prompt)
        assert written.endswith(f"Assistant: {first}verbosity:{given['verbosity']}")

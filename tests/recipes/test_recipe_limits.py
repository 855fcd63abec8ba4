"""Recipes that are made to be slow: what they would come to is counted before it is written out, and the rest is
bounded in time."""

from __future__ import annotations

import itertools

import pytest
from recipe_shelf import Shelf

from steerboard.platform.http.errors import ClientGone
from steerboard.recipes.errors import InvalidRecipe
from steerboard.recipes.limits import MAX_VALUES, Budget
from steerboard.recipes.planning.plan import make_plan, read_recipe
from steerboard.recipes.schemas import RecipeOut

_HEAD = "name: a\ninputs: {base: {type: model, default: tiny}, p: {type: dataset, kind: prompts, default: questions}}\n"
_SFT = "sft: {run: train, method: sft, model: $base, data: $p}"


def _flow(items: list[str]) -> str:
    return "{" + ", ".join(items) + "}"


def _rounds(stages: int, fields: str = "") -> str:
    each = "".join(f"    s{i}: {{run: generate, model: previous, data: $p{fields}}}\n" for i in range(stages))
    return f"{_HEAD}stages: {{{_SFT}}}\nrounds: {{count: 20}}\nround:\n  previous: sft\n  stages:\n{each}"


def _sweep(stages: list[str], vary: str) -> str:
    return f"{_HEAD}stages: {_flow(stages)}\nsweep: {{vary: {vary}, metric: sft.eval_loss, goal: minimize}}\n"


_RATES = "{sft.lr: [" + ", ".join(f"{i}.0e-6" for i in range(1, 65)) + "]}"
_TOO_LARGE = {
    "rounds": (_rounds(1200), "rounds (line 4): has 24,001 stages in all its rounds; the limit is 200"),
    "rounds of many values": (
        _rounds(9, f", prompts: [{', '.join('a' for _ in range(500))}]"),
        f"rounds (line 4): has over {MAX_VALUES:,} values in all its rounds",
    ),
    "rounds that others read": (
        f"{_rounds(3)}".replace(
            f"{{{_SFT}}}", f"{{{_SFT}, report: {{run: evaluate, entrants: [{', '.join('s1' for _ in range(2000))}]}}}}"
        ),
        f"rounds (line 4): has over {MAX_VALUES:,} values in all its rounds",
    ),
    "stages": (
        f"{_HEAD}stages: {_flow([f's{i}: {{run: train}}' for i in range(2000)])}",
        "stages (line 3): has 2,000 stages; the limit is 200",
    ),
    "variants": (
        _sweep([_SFT, *(f"s{i}: {{run: generate, model: sft, data: $p}}" for i in range(3))], _RATES),
        "sweep (line 4): has 256 stages in all its variants; the limit is 200",
    ),
    "variants of many values": (
        _sweep([_SFT.replace("}", f", x: [{', '.join('1' for _ in range(5000))}]}}")], _RATES),
        f"sweep (line 4): has over {MAX_VALUES:,} values in all its variants",
    ),
    "inputs": (
        f"name: a\ninputs: {_flow([f'i{i}: {{type: model}}' for i in range(2000)])}\nstages: {{{_SFT}}}",
        "inputs (line 2): has 2,000 inputs; the limit is 100",
    ),
    "references": (
        f"{_HEAD}stages: {{m: {{run: evaluate, entrants: [{', '.join('m' for _ in range(6000))}]}}}}",
        "stages.m.entrants (line 3): has 6,000 items; the limit is 500",
    ),
    "texts of aliases": (
        f"{_HEAD}x: &x {'y' * 60_000}\nstages: {_flow([f'm{i}: {{run: generate, model: *x}}' for i in range(50)])}",
        "line 3: has over 1,048,576 characters once its aliases are expanded",
    ),
}


@pytest.mark.parametrize("kind", _TOO_LARGE)
def test_what_a_recipe_comes_to_is_counted_before_it_is_written_out(shelf: Shelf, kind: str) -> None:
    text, fault = _TOO_LARGE[kind]
    with pytest.raises(InvalidRecipe) as refused:
        # Little enough that it would be over before the first hundred copies.
        read_recipe(text, [], shelf, Budget(seconds=10))
    assert refused.value.code == "recipe_too_large"
    assert [f"{error.location}: {error.message}" for error in refused.value.errors] == [fault]


def test_the_launch_form_counts_rounds_too() -> None:
    with pytest.raises(InvalidRecipe, match="24,001 stages"):
        RecipeOut.of(_rounds(1200))


def test_a_sweep_counts_a_stage_once_for_each_value_that_reaches_it(shelf: Shelf) -> None:
    """8 x 8 variants are 8 + 8 + 64 + 64 stages, not 4 x 64."""
    eight = "[" + ", ".join(f"{i}.0e-6" for i in range(1, 9)) + "]"
    stages = [
        "first: {run: train, method: sft, model: $base, data: $p}",
        "middle: {run: generate, model: first, data: $p}",
        "sft: {run: train, method: sft, model: first, data: middle}",
        "late: {run: generate, model: sft, data: $p}",
    ]
    read = read_recipe(_sweep(stages, f"{{first.lr: {eight}, sft.lr: {eight}}}"), [], shelf, Budget(seconds=10))
    assert sum(name.startswith("first-") for name in read.drafts) == 8
    assert sum(name.startswith("late-") for name in read.drafts) == 64


_KEYS = [f"k{i}: 1" for i in range(9000)]
_NAMES = ", ".join(f"m{i}" for i in range(90))
_SLOW = {
    "keys that no stage has": f"{_HEAD}stages: {{s: {_flow(['run: train', 'method: sft', *_KEYS])}}}",
    "keys that no recipe has": "\n".join([f"{_HEAD}stages: {{{_SFT}}}", *_KEYS]),
    "one long text": f"{_HEAD}description: '{'x ' * 100_000}'\nstages: {{{_SFT}}}",
    "many evaluations": f"{_HEAD}stages: "
    + _flow([f"m{i}: {{run: evaluate, entrants: [{_NAMES}], rewards: [independent]}}" for i in range(190)]),
    "a sweep over everything": _sweep([_SFT, f"s: {{run: generate, model: sft, prompts: [{_NAMES}]}}"], _RATES),
}


@pytest.mark.parametrize("kind", _SLOW)
def test_a_recipe_that_takes_too_long_is_refused(shelf: Shelf, kind: str) -> None:
    with pytest.raises(InvalidRecipe) as refused:
        read_recipe(_SLOW[kind], [], shelf, Budget(seconds=0.005))
    assert refused.value.code == "recipe_too_slow"


@pytest.mark.parametrize("kind", _SLOW)
def test_a_recipe_that_nobody_waits_for_is_dropped(shelf: Shelf, kind: str) -> None:
    asked = itertools.count()
    with pytest.raises(ClientGone):
        read_recipe(_SLOW[kind], [], shelf, Budget(gone=lambda: next(asked) >= 9))


def test_overrides_share_the_time_of_their_recipe(shelf: Shelf) -> None:
    long = [f"sft.x{i}=[{'1, ' * 3000}1]" for i in range(200)]
    with pytest.raises(InvalidRecipe) as refused:
        read_recipe(f"{_HEAD}stages: {{{_SFT}}}", long, shelf, Budget(seconds=0.1))
    assert refused.value.code == "recipe_too_slow"


def test_overrides_that_make_a_recipe_large_or_deep_are_refused(shelf: Shelf) -> None:
    text = f"{_HEAD}stages: {{{_SFT}}}"
    with pytest.raises(InvalidRecipe, match=f"over {MAX_VALUES:,} values"):
        make_plan(text, [f"sft.x{i}=[{'1, ' * 3000}1]" for i in range(8)], shelf, Budget(seconds=30))
    with pytest.raises(InvalidRecipe, match="nested more than 20 deep"):
        make_plan(text, [f"sft{'.a' * 4000}=1"], shelf)


def test_more_errors_than_anyone_reads_end_the_search(shelf: Shelf) -> None:
    with pytest.raises(InvalidRecipe) as refused:
        read_recipe(_SLOW["keys that no recipe has"], [], shelf, Budget(seconds=30))
    assert refused.value.detail == "the recipe has over 1,000 errors"
    assert len(refused.value.errors) == 100


def test_a_long_text_is_not_repeated_in_every_error(shelf: Shelf) -> None:
    text = f"{_HEAD}x: &x {'y' * 5000}\nstages: {_flow([f'm{i}: {{run: *x}}' for i in range(100)])}"
    with pytest.raises(InvalidRecipe) as refused:
        make_plan(text, [], shelf)
    assert len(refused.value.errors) == 100
    assert max(len(error.message) for error in refused.value.errors) <= 500


def test_a_key_without_end_is_refused(shelf: Shelf) -> None:
    with pytest.raises(InvalidRecipe, match="has a key of 900 characters; the limit is 200"):
        make_plan(f"{_HEAD}stages: {{{'k' * 900}: {{run: train}}}}", [], shelf)

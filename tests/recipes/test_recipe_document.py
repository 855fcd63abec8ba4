"""Reading recipe files: types, lines, and files that mean harm; and that nothing changes what was read."""

from __future__ import annotations

import contextlib
import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recipe_plans import CONTRACT
from recipe_shelf import Shelf
from test_recipe_rounds import RECIPE as ROUNDS
from test_recipe_sweep import RECIPE as SWEPT

from steerboard.recipes import document
from steerboard.recipes.errors import Faults, InvalidRecipe
from steerboard.recipes.inputs import Outside, declarations
from steerboard.recipes.limits import MAX_BYTES, MAX_DEPTH, Budget
from steerboard.recipes.places import Node, Place
from steerboard.recipes.planning.implied import fill_implied
from steerboard.recipes.planning.rounds import expand_rounds
from steerboard.recipes.planning.sweep.variants import expand_sweep
from steerboard.recipes.recipe import Recipe


def parse(text: str) -> Node:
    return document.parse(text, Budget())


def parse_value(text: str) -> object:
    return document.parse_value(text, Budget())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5.0e-6", 5e-6),
        ("5e-6", 5e-6),
        ("1e-4", 1e-4),
        ("1E5", 1e5),
        (".5", 0.5),
        ("-5", -5),
        ("010", 10),
        ("1:30", "1:30"),
        ("true", True),
        ("no", "no"),
        ("null", None),
        ("", None),
        ("2024-01-01", "2024-01-01"),
        ("'5'", "5"),
        ("[-5.0, 0, 5]", [-5.0, 0, 5]),
        ("{a: 1, b: [x]}", {"a": 1, "b": ["x"]}),
        ("random:tiny-llama", "random:tiny-llama"),
        ("1.0.0", "1.0.0"),
        ("e5", "e5"),
    ],
)
def test_scalars_are_what_their_writer_meant(text: str, value: object) -> None:
    parsed = parse_value(text)
    assert parsed == value
    assert type(parsed) is type(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_python_prints_is_read_back_as_that_float(value: float) -> None:
    assert parse_value(repr(value)) == value


@given(st.integers(min_value=-(10**20), max_value=10**20))
def test_every_integer_is_read_back(value: int) -> None:
    assert parse_value(str(value)) == value


def test_every_key_and_item_knows_its_line_and_column() -> None:
    text = "name: x\nstages:\n  a:\n    run: mix\n    parts:\n      - data: b\n      - {data: c, share: 0.5}\n"
    file = parse(text)
    assert file.at("name").place == Place(line=1, column=1)
    assert file.at("stages", "a", "run").place == Place(line=4, column=5)
    assert file.at("stages", "a", "parts", 0, "data").place == Place(line=6, column=9)
    assert file.at("stages", "a", "parts", 1).place == Place(line=7, column=9)
    assert file.at("stages", "a", "parts", 1, "share").place == Place(line=7, column=19)
    nothing = ("stages", "a", "parts", 1, "nothing")
    assert Recipe.read(text).location(nothing) == "stages.a.parts.1.nothing (line 7)"


def test_a_change_gives_another_value_and_leaves_the_first_as_it_was() -> None:
    file = parse("a:\n  - x: 1\n  - x: 2\n  - x: 3\nb: 1\n")
    items = file.at("a").items
    changed = file.put(("a",), Node.sequence([items[0], items[2]], file.at("a").place))
    assert changed.value == {"a": [{"x": 1}, {"x": 3}], "b": 1}
    assert changed.at("a", 1, "x").place == Place(line=4, column=5)
    assert changed.at("b").place == Place(line=5, column=1)
    set_here = changed.put(("a", 1, "y"), Node(5, Place(override="a.1.y=5")))
    assert set_here.value == {"a": [{"x": 1}, {"x": 3, "y": 5}], "b": 1}
    assert [str(node.place) for node in set_here.trail(("a", 1, "y", "z"))] == [
        "line 1", "line 1", "line 4", "--set a.1.y=5"
    ]  # fmt: skip
    assert file.value == {"a": [{"x": 1}, {"x": 2}, {"x": 3}], "b": 1}


@pytest.mark.parametrize("text", [ROUNDS, SWEPT, CONTRACT])
def test_no_step_of_the_planner_changes_the_recipe_that_it_is_given(shelf: Shelf, text: str) -> None:
    recipe, faults = Recipe.read(text), Faults()
    before = copy.deepcopy(recipe.data)
    unrolled, _, _ = expand_rounds(recipe, [], faults)
    swept, _ = expand_sweep(unrolled, faults)
    values = {"base": Outside("random:tiny-llama"), "preferences": shelf.datasets["hh"]}
    filled = fill_implied(swept, declarations(recipe, faults), values, shelf, faults)
    assert filled.recipe.stages.keys() != recipe.stages.keys()
    assert recipe.data == before
    assert not faults


def refused(text: str) -> str:
    with pytest.raises(InvalidRecipe) as caught:
        parse(text)
    return str(caught.value)


def test_a_key_given_twice_is_refused_with_both_lines() -> None:
    message = refused("name: x\nstages:\n  a: {run: mix}\n  a: {run: score}\n")
    assert "stages.a (line 4): is given twice, first in line 3" in message


def test_broken_yaml_names_the_line() -> None:
    assert "line 4" in refused("name: x\nstages:\n  a: {run: mix\nb: 1\n")
    assert "line 2" in refused("a: 1\n\tb: 2\n")


def test_a_nul_character_is_an_error_and_not_a_crash() -> None:
    assert "not valid YAML" in refused("name: \x00\n")


def test_several_faults_are_reported_together_in_order() -> None:
    message = refused("b: !!python/object:os.system x\na: 1\na: 2\n<<: {c: 1}\n")
    assert message.index("line 1") < message.index("line 3") < message.index("line 4")
    assert "3 errors" in message


def test_no_tag_makes_an_object() -> None:
    assert "which recipes do not use" in refused("name: !!python/object/apply:os.getcwd []\nb: !custom x\n")


def test_aliases_work() -> None:
    assert parse("a: &x {lr: 1.0}\nb: *x\n").value == {"a": {"lr": 1.0}, "b": {"lr": 1.0}}


def test_an_alias_bomb_is_refused() -> None:
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 12)]
    assert "once its aliases are expanded" in refused("\n".join(lines))


def test_an_alias_that_holds_itself_is_refused() -> None:
    assert "contains itself" in refused("a: &x [1, *x]\n")


def test_deep_nesting_is_refused_with_its_line() -> None:
    message = refused("name: x\n" + "a: " + "[" * 5000 + "]" * 5000)
    assert f"nested more than {MAX_DEPTH} deep" in message
    assert "line 2" in message


def test_a_large_file_is_refused_before_it_is_read() -> None:
    assert f"{MAX_BYTES:,}" in refused("# " + "x" * MAX_BYTES)


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just words", "42", "# only a comment\n"])
def test_a_file_that_is_no_mapping_is_refused(text: str) -> None:
    assert "must be a mapping" in refused(text)


@given(st.text(max_size=200))
def test_any_text_is_a_recipe_or_a_clear_error(text: str) -> None:
    with contextlib.suppress(InvalidRecipe):
        assert isinstance(parse(text).value, dict)

"""The recipe of generative reward models rewards the verdicts that judges are understood by."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from steerboard.evaluation.judges import verdict_parser
from steerboard_contracts.judge_prompts.verdict_prompts import VERDICT
from steerboard_contracts.methods import needed_method

RECIPE = yaml.safe_load((Path(__file__).resolve().parents[2] / "recipes" / "generative-reward.yaml").read_text())


def test_the_recipe_reads_verdicts_by_the_rule():
    stage = {name: value for name, value in RECIPE["stages"]["judge"].items() if name not in ("model", "data")}
    assert [rule.extract for rule in needed_method(stage["method"]).config(**stage).rules] == [VERDICT]


@pytest.mark.parametrize(
    "text",
    ["So [[A]].", "[[B]]", "[[A]]\n\nFinal verdict: [[A]]", "[[A]]? No, [[B]].", "[[B]] or [[C]]", "[[C]]", "A", ""],
)
def test_a_verdict_is_read_as_a_judge_of_the_style_pairwise_is(text):
    found = re.findall(VERDICT, text)
    verdicts = {letter: verdict_parser.pair(f"[[{letter}]]") for letter in "AB"}
    expected = [letter for letter, verdict in verdicts.items() if verdict == verdict_parser.pair(text)]
    assert found == expected

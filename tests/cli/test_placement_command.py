"""`steerboard placement`: the table, the way out, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from steerboard.cli import placement
from steerboard_contracts.errors import BadInput
from support.models.llama_shapes import LLAMA_8B

GRPO = ["--method", "grpo"]
LARGE = ["--method", "ppo", "--model", "70b", "--nodes", "12"]
ZERO3 = ["--set", "strategy=zero3", "--set", "gradient_checkpointing=true", "--set", "engine=vllm"]
APART = ["--set", "vllm.tensor_parallel=8", "--set", "placement={rollout: 2}"]


def asked(*options: str) -> tuple[int, str]:
    result = CliRunner().invoke(placement.commands, list(options))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_what_fits_is_shown_by_role_with_its_sums() -> None:
    code, shown = asked(*LARGE, *ZERO3, *APART)
    assert code == 0
    lines = [line.split("\t") for line in shown.splitlines() if "\t" in line]
    table = {line[0]: dict(zip(lines[0], line, strict=True)) for line in lines[1:]}
    assert (table["training"]["devices"], table["rollout"]["devices"]) == ("80", "16")
    training = table["training"]
    parts = [float(training[name]) for name in lines[0][2:9]]
    assert sum(parts) == pytest.approx(float(training["total"]), abs=0.4)
    assert training["fits"] == "yes"
    assert "full windows" in table["rollout"]["fits"]
    assert "70,553,706,496 parameters on 12 x 8 devices" in shown


def test_what_does_not_fit_ends_with_1_and_the_changes_that_help() -> None:
    code, shown = asked(*LARGE, *ZERO3)
    assert code == 1
    assert "too much" in shown
    assert "it would fit with placement.rollout 1, vllm.tensor_parallel" in shown


def test_a_folder_gives_the_models_shape_and_json_has_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_8B))
    code, shown = asked(
        *GRPO, "--model", str(tmp_path), "--rewards", "0", "--json", *ZERO3, "--set", "vllm.memory_fraction=0.5"
    )
    document = json.loads(shown)
    assert code == 0
    assert document["fits"] is True
    assert document["parameters"] == 8_030_261_248
    assert [role["role"] for role in document["roles"]] == ["training", "rollout"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([*GRPO, "--model", "9b"], "9b cannot be read"),
        (["--method", "dpo"], "does not sample in training"),
        ([*GRPO, "--set", "placement.rollout"], "not of the form"),
        ([*GRPO, "--set", "placement.rollout=-1"], "placement.rollout: should be greater"),
        ([*GRPO, "--set", "strategy=zero3"], "zero3 would gather"),
        ([*GRPO, "--set", "kl_wieght=1"], "unknown key `kl_wieght`; did you mean `kl_weight`?"),
        ([*GRPO, "--set", "placement.rolout=1"], "unknown key `rolout`; did you mean `rollout`?"),
        ([*GRPO, "--set", "lr=1e-6", "--set", "lr.peak=2"], "lr: should be a valid number"),
        ([*GRPO, "--set", "lr=[1"], "the value is not valid YAML"),
        (["--method", "grppo"], "did you mean `grpo`?"),
    ],
)
def test_what_makes_no_sense_is_refused(options: list[str], why: str) -> None:
    with pytest.raises(BadInput, match=re.escape(why)):
        asked(*options)


def test_a_method_has_to_be_named() -> None:
    code, shown = asked("--model", "8b")
    assert code == 2
    assert "--method" in shown


def test_another_methods_refusal_names_those_that_sample() -> None:
    with pytest.raises(BadInput) as refused:
        asked("--method", "dpo")
    assert "ppo, rloo, grpo" in (refused.value.hint or "")


def test_a_file_that_is_no_decoder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(BadInput, match="plain decoder"):
        asked(*GRPO, "--model", str(tmp_path / "config.json"))

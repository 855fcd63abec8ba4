"""`steerboard demo-real` with a tiny model in the place of the real one: every stage of its recipe and its checks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from steerboard.cli.demo.review_prompts import review_prompts
from steerboard_contracts.run_kinds.base import BaseModelConfig
from steerboard_workers.stages.base import random_llama, train_tokenizer

STEERBOARD = str(Path(sys.executable).with_name("steerboard"))
WORDS = ("good", "bad", "wonderful", "terrible", "hotel", "film", "phone", "the", "a", "is", "was", "great", "awful")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny") / "model"
    tokenizer = train_tokenizer([*review_prompts(), *WORDS] * 5, 600, 128)
    torch.manual_seed(0)
    shape = BaseModelConfig(source="random:tiny-llama", hidden=32, layers=1, heads=2, max_length=128)
    random_llama(shape, tokenizer).save_pretrained(folder)
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m.role + ': ' + m.content + eos_token }}{% endfor %}"
        "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
    )
    tokenizer.save_pretrained(folder)
    return folder


def test_all_prompts_are_distinct_and_ask_for_one_sentence() -> None:
    prompts = list(review_prompts())
    assert len(set(prompts)) == len(prompts) == 504


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_every_stage_succeeds_and_the_truth_is_checked(tiny: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STEERBOARD_")}
    environment |= {"STEERBOARD_HOME": str(tmp_path / "home")}
    report = tmp_path / "report.json"
    command = [STEERBOARD, "demo-real", str(tiny), "--exit", "--port", "0", "--report", str(report)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "By the truth, Decision Transformer (guidance 3) reaches" in " ".join(done.stdout.split())
    assert "steerboard evaluations rank demo-real-1.report" in done.stdout
    document = json.loads(report.read_text())
    assert (document["synthetic"], document["quality"]) == (False, "sentiment")
    asked = [(row["guidance"], row["score"]) for row in document["methods"] if row["score"] is not None]
    assert len(set(map(str, asked))) == 10
    # The base model is what all others are compared with.
    assert [row["entrant"] for row in document["methods"] if row["quality_gain"] is None] == ["smollm2-135m-instruct"]

"""The column vLLM of docs/architectures.md is what this finds: each family answered by vLLM as by transformers.

`STEERBOARD_WRITE_TABLE=1` writes what it finds into the page.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from vllm_families_probe import NEW_TOKENS, PROMPT

from steerboard.platform.processes import vllm
from steerboard_workers.stages import base
from steerboard_workers.stages.models.model_io import load_policy
from support.models.published import FAMILIES, published
from support.models.vllm_engine import PYTHON, needs_vllm

PAGE = Path(__file__).parents[2] / "docs" / "architectures.md"
PROBE = Path(__file__).with_name("vllm_families_probe.py")
# vLLM's attention on CPUs has no smaller heads.
WIDE = {"hidden_size": 128, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 64}

pytestmark = [needs_vllm, pytest.mark.long]


@pytest.fixture(scope="module")
def models(make_stage, tmp_path_factory) -> Path:
    """A folder of the models, each as the platform keeps it, by family."""
    folder, source = tmp_path_factory.mktemp("families"), tmp_path_factory.mktemp("published")
    for family in FAMILIES:
        made = published(source / family, family, **WIDE)
        stage = make_stage({"run": "base", "source": str(made)}, folders={"roots": [str(source)]})
        base.run(stage)
        (stage.directory / "outputs" / "model").rename(folder / family)
    return folder


@pytest.fixture(scope="module")
def answers(models: Path) -> dict[str, dict[str, Any]]:
    """What vLLM answers or refuses, by family."""
    assert PYTHON is not None
    out = models.with_suffix(".json")
    variables = {**os.environ, "OMP_NUM_THREADS": "1", **vllm.variables(PYTHON, models.parent)}
    done = subprocess.run([PYTHON, PROBE, models, out], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, dict[str, Any]] = json.loads(out.read_text())
    return found


def theirs(model: Path) -> list[int]:
    """The likeliest tokens by transformers."""
    policy = load_policy(model, "fp32", "cpu")
    ids = torch.tensor([policy.renderer.prompt_ids(PROMPT)])
    with torch.inference_mode():
        whole = policy.model.generate(ids, max_new_tokens=NEW_TOKENS, do_sample=False)
    return whole[0, ids.shape[1] :].tolist()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_page_says_of_each_family_whether_vllm_answers_as_transformers_does(models, answers, family):
    answer = answers[family]
    if "code" in answer:
        assert answer["code"] == "engine_refused", answer
        found = "no"
    else:
        wanted = theirs(models / family)
        assert answer["ids"] == wanted[: len(answer["ids"])]
        found = "yes"
    row = re.search(rf"^(\| {family} \|.*\| )(\S+) \|$", PAGE.read_text(), re.MULTILINE)
    assert row is not None
    if os.environ.get("STEERBOARD_WRITE_TABLE"):
        PAGE.write_text(PAGE.read_text().replace(row[0], f"{row[1]}{found} |"))
    else:
        assert row[2] == found

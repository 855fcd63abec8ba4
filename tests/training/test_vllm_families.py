"""The column vLLM of docs/architectures.md is what this finds: each family answered by vLLM as by transformers.

`STEERBOARD_WRITE_TABLE=1` writes what it finds into the page.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from vllm_families_probe import NEW_TOKENS, PROMPT

from steerboard.platform.processes import vllm
from steerboard_workers.stages import base
from steerboard_workers.stages.models.model_io import load_policy
from steerboard_workers.stages.runtime import Stage
from support.models.published import FAMILIES, published
from support.models.vllm_engine import PYTHON, needs_vllm

PAGE = Path(__file__).parents[2] / "docs" / "architectures.md"
PROBE = Path(__file__).with_name("vllm_families_probe.py")
# vLLM's attention on CPUs has no smaller heads.
WIDE = {"hidden_size": 128, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 64}


def answered(make_stage: Callable[..., Stage], folder: Path, family: str) -> str:
    """`yes` for the likeliest tokens of transformers, `no` for a refusal."""
    source = published(folder / "published", family, **WIDE)
    stage = make_stage({"run": "base", "source": str(source)}, folders={"roots": [str(folder)]})
    base.run(stage)
    model = stage.directory / "outputs" / "model"
    found = probed(model, folder)
    if "code" in found:
        assert found["code"] == "engine_refused", found
        return "no"
    policy = load_policy(model, "fp32", "cpu")
    prompt = policy.renderer.prompt_ids(PROMPT)
    ids = torch.tensor([prompt])
    with torch.inference_mode():
        whole = policy.model.generate(ids, max_new_tokens=NEW_TOKENS, do_sample=False)
    theirs = whole[0, len(prompt) :].tolist()
    assert found["ids"] == theirs[: len(found["ids"])], "vLLM computes something else"
    return "yes"


def probed(model: Path, folder: Path) -> dict[str, Any]:
    assert PYTHON is not None
    out = folder / "found.json"
    variables = {**os.environ, "OMP_NUM_THREADS": "1", **vllm.variables(PYTHON, folder)}
    done = subprocess.run([PYTHON, PROBE, model, out], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(out.read_text())
    return found


@needs_vllm
@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_the_page_says_of_each_family_whether_vllm_answers_as_transformers_does(make_stage, tmp_path, family):
    found = answered(make_stage, tmp_path, family)
    row = re.search(rf"^(\| {family} \|.*\| )(\S+) \|$", PAGE.read_text(), re.MULTILINE)
    assert row is not None
    if os.environ.get("STEERBOARD_WRITE_TABLE"):
        PAGE.write_text(PAGE.read_text().replace(row[0], f"{row[1]}{found} |"))
    else:
        assert row[2] == found

"""What a stage process loads: only what its settings need."""

from __future__ import annotations

import re

from running import run_process

QUICK = {"run": "train", "batch": 8, "max_steps": 1, "checkpoint_every": 0, "max_length": 96}


def test_a_ddp_stage_neither_imports_deepspeed_nor_shows_its_warnings(make_stage, base_model):
    stage = make_stage({**QUICK, "method": "sft", "lora": {}}, model=base_model)
    code, _, log = run_process(stage, PYTHONPROFILEIMPORTTIME="1")
    assert code == 0, log
    imported = set(re.findall(r"^import time:.*\| +([\w.]+)$", log, re.MULTILINE))
    assert "torch" in imported
    assert "deepspeed" not in imported
    assert not re.search(r"real_accelerator|Setting accelerator|Setting ds_accelerator", log)

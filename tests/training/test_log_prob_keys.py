"""What a run finds of the log-probs that others have left in its cache: those that it would compute, and no others."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from running import ran, recorded, with_config
from safetensors.torch import load_file, save_file

from steerboard_contracts.stage.inputs import ModelInput
from steerboard_workers.stages.runtime import Stage

DPO = {"run": "train", "method": "dpo", "precision": "fp32", "batch": 8, "max_steps": 1, "max_length": 96}
LORA = {"rank": 2, "merge": False}
# Prompts are equal whatever its comment: that does not show in them.
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{# one #}"


@pytest.fixture
def bf16_model(base_model, tmp_path) -> Path:
    folder = with_config(base_model, tmp_path / "bf16", dtype="bfloat16")
    tensors = load_file(folder / "model.safetensors")
    save_file({name: t.bfloat16() for name, t in tensors.items()}, folder / "model.safetensors", {"format": "pt"})
    return folder


@pytest.fixture
def adapter(make_stage, base_model) -> Path:
    stage = make_stage({**DPO, "method": "sft", "lr": 0.1, "lora": LORA}, model=base_model)
    ran(stage)
    return stage.directory / "outputs" / "model"


def with_template(model: Path, folder: Path, template: str) -> Path:
    shutil.copytree(model, folder)
    (folder / "chat_template.jinja").write_text(template)
    return folder


def with_alpha(adapter: Path, folder: Path, alpha: int) -> Path:
    shutil.copytree(adapter, folder)
    path = folder / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "lora_alpha": alpha}))
    return folder


def test_a_run_finds_the_log_probs_of_an_equal_run_and_of_no_other(
    make_stage, base_model, bf16_model, adapter, tmp_path
):
    """All with one cache. The others differ in precision, in how they hold their base, or in what their model computes
    by files other than its weights."""
    one, other = (
        with_template(base_model, tmp_path / text, TEMPLATE.replace("one", text)) for text in ("one", "other")
    )
    runs = {
        "fp32": {},
        "bf16": {"precision": "bf16"},
        "all of a base in bf16": {"model": bf16_model, "precision": "bf16"},
        "LoRA over it": {"model": bf16_model, "precision": "bf16", "lora": LORA},
        "another config.json": {"model": with_config(base_model, tmp_path / "config", rms_norm_eps=0.1)},
        "an adapter": {"reference": adapter},
        "another adapter_config.json": {"reference": with_alpha(adapter, tmp_path / "alpha", 64)},
        "a chat template": {"model": one, "template": "chat"},
        "another chat template": {"model": other, "template": "chat"},
    }

    def cached_of(model: Path = base_model, reference: Path | None = None, **changes) -> tuple[int, int]:
        made = make_stage({**DPO, **changes}, model, "preferences", caches={"reference": str(tmp_path / "cache")})
        if reference is not None:
            given = {"reference": ModelInput(name="adapter", path=str(reference), content_hash="a")}
            made = Stage(
                made.directory, made.spec.model_copy(update={"inputs": made.spec.inputs | given}), made._events
            )
        ran(made)
        lines = [event.message for event in recorded(made, "log")]
        (counts,) = [c for line in lines if (c := re.fullmatch(r"log-probs of reference: (\d+) of (\d+) .*", line))]
        return int(counts[1]), int(counts[2])

    first = {name: cached_of(**run) for name, run in runs.items()}
    assert {name: known for name, (known, _) in first.items()} == dict.fromkeys(runs, 0)
    assert {name: cached_of(**run) for name, run in runs.items()} == {name: (of, of) for name, (_, of) in first.items()}

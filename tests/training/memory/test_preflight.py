"""A step of the largest passes is tried before training begins: it changes nothing, and reports what does not fit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import torch
from running import data_of, recorded
from safetensors.torch import load_file

from steerboard_contracts.errors import OutOfMemory
from steerboard_contracts.stage.events import STAGE_EVENT, Failed
from steerboard_workers.alignment.batches.batching import Batcher, MicroBatch
from steerboard_workers.stages import train
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training import preflight
from steerboard_workers.stages.training.loop import Trainer
from steerboard_workers.stages.training.update import Update

CONFIG = {"run": "train", "method": "sft", "batch": 16, "lr": 2e-3, "max_steps": 3, "max_length": 96}


def weights(stage: Stage) -> dict[str, torch.Tensor]:
    return load_file(stage.directory / "outputs" / "model" / "model.safetensors")


@pytest.mark.parametrize("method", ["sft", "reward_model"])
def test_the_rehearsal_changes_nothing(make_stage, base_model, monkeypatch, method):
    """Bit for bit the run that never rehearsed, dropout's draws included."""
    data = data_of(method)
    config = {**CONFIG, "method": method, "weight_decay": 0.1}
    rehearsed = make_stage(config, model=base_model, data=data)
    summary = train.run(rehearsed).summary
    assert summary["memory_estimated"] > 0
    assert summary["memory_measured"] > 0
    monkeypatch.setattr(preflight.Preflight, "check", lambda self: {})
    plain = make_stage(config, model=base_model, data=data)
    train.run(plain)
    ours, theirs = weights(rehearsed), weights(plain)
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())
    values = [[e.values["loss"] for e in recorded(stage, "metrics")] for stage in (rehearsed, plain)]
    assert values[0] == values[1]


SHORT_OF_MEMORY = """
import resource, sys
from pathlib import Path
from steerboard_workers.stages.__main__ import main
from steerboard_workers.stages.training.preflight import Preflight

check = Preflight.check

def short_of_memory(self):
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    return check(self)

Preflight.check = short_of_memory
sys.exit(main(Path(sys.argv[1])))
"""


def limited(stage: Stage, room: int) -> Failed:
    """The stage as a process of its own that may take `room` bytes more than it has when its model is loaded."""
    done = subprocess.run(
        [sys.executable, "-c", SHORT_OF_MEMORY, str(stage.directory), str(room)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    last = STAGE_EVENT.validate_json(done.stdout.splitlines()[-1])
    assert isinstance(last, Failed), done.stderr[-2000:]
    return last


@pytest.fixture(scope="module")
def long_rows(tmp_path_factory) -> Path:
    """100 dialogues that fill the window."""
    path = tmp_path_factory.mktemp("long") / "rows.jsonl"
    row = {"prompt": [{"role": "user", "content": "eggs " * 20}], "response": "flour " * 80, "source": "x"}
    path.write_text("".join(json.dumps({**row, "row": i, "split": "train", "half": "a"}) + "\n" for i in range(100)))
    return path


@pytest.mark.long
def test_what_does_not_fit_fails_with_settings_that_do(make_stage, base_model, long_rows):
    config = {**CONFIG, "batch": 96, "micro_tokens": 16384, "batching": "padded"}
    failed = limited(make_stage(config, model=base_model, data=str(long_rows)), 32 << 20)
    assert failed.code == "out_of_memory"
    assert "A training step at 96 tokens does not fit" in failed.detail
    assert failed.fix is not None
    micro_tokens = failed.fix.changes["micro_tokens"]
    # Half of it, the first that is tried, would still take some 80 MB of activations.
    assert 96 <= micro_tokens < 8192
    together = micro_tokens // 96
    assert failed.fix.says == f"micro-batch {together}, accumulation {-(-96 // together)}"
    assert failed.fix.says in failed.hint
    # And with them it works: the settings were tried, not guessed.
    smaller = make_stage({**config, **failed.fix.changes}, model=base_model, data=str(long_rows))
    assert train.run(smaller).summary["steps"] == 2


@pytest.mark.parametrize("error", [RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), MemoryError()])
def test_a_step_that_fails_later_says_what_fits_too(make_stage, base_model, monkeypatch, error):
    """What it held of the device is free again when smaller steps are tried."""
    held: list[weakref.ref] = []
    still_held: list[bool] = []
    rehearse = Update.rehearse

    def full(self: Trainer) -> dict[str, float]:
        activations = torch.zeros(8)
        held.append(weakref.ref(activations))
        raise error

    def tried(self: Update, batcher: Batcher) -> None:
        still_held.extend(weak() is not None for weak in held)
        rehearse(self, batcher)

    monkeypatch.setattr(Trainer, "run", full)
    monkeypatch.setattr(Update, "rehearse", tried)
    with pytest.raises(OutOfMemory) as caught:
        train.run(make_stage(CONFIG, model=base_model))
    assert caught.value.extra["fix"].changes == {"micro_tokens": 1024}
    assert still_held == [False]


def test_what_fits_is_told_in_pairs_where_pairs_are_learned(make_stage, base_model, monkeypatch, tmp_path):
    """The proposed sizes count pairs, as `batch` and `micro_batch` do."""

    def full(self: Trainer) -> dict[str, float]:
        raise MemoryError

    monkeypatch.setattr(Trainer, "run", full)
    pair = {"prompt": [{"role": "user", "content": "eggs " * 20}], "chosen": "flour " * 80, "rejected": "salt " * 80}
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({**pair, "row": row}) + "\n" for row in range(16)))
    config = {**CONFIG, "method": "reward_model", "micro_tokens": 768, "batching": "padded", "share_prompt": False}
    with pytest.raises(OutOfMemory) as caught:
        train.run(make_stage(config, model=base_model, data=str(tmp_path / "rows.jsonl")))
    fix = caught.value.extra["fix"]
    assert (fix.changes, fix.says) == ({"micro_tokens": 384}, "micro-batch 2, accumulation 8")


@pytest.mark.parametrize("start", ["plain", "adapter", "nf4"])
def test_no_strategy_is_proposed_that_the_run_could_not_take(make_stage, wide_model, monkeypatch, start):
    """4-bit weights cannot be spread, and an adapter's base not before it is merged."""
    model, config = wide_model, {**CONFIG, "max_steps": 1}
    if start == "adapter":
        made = make_stage({**config, "lora": {"rank": 2, "merge": False}}, model=wide_model)
        train.run(made)
        model = made.directory / "outputs" / "model"
    if start == "nf4":
        pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed")
        config["lora"] = {"quantise": "nf4"}

    def full(self: Update, batcher: Batcher) -> None:
        raise MemoryError

    monkeypatch.setattr(Update, "rehearse", full)
    monkeypatch.setattr(preflight.Preflight, "_should_fit", lambda self, way: way.strategy == "zero3")
    with pytest.raises(OutOfMemory) as caught:
        train.run(make_stage(config, model=model))
    fix = (caught.value.extra or {}).get("fix")
    if start == "plain":
        assert fix.changes.items() >= {"strategy": "zero3", "offload": "all"}.items()
    else:
        assert fix is None
        assert "lower max_length" in caught.value.hint


def test_no_pass_of_a_run_is_larger_than_those_that_were_rehearsed(make_stage, base_model, monkeypatch, tmp_path):
    """Neither longer nor of more positions: many short rows fill a pass better than one long one."""
    words = [80, *([10] * 60)]
    rows = [
        {"prompt": [{"role": "user", "content": "eggs"}], "response": "flour " * count, "row": row}
        for row, count in enumerate(words)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    passes: list[tuple[int, int]] = []
    rehearsed = 0
    collate, run = Batcher.collate, Trainer.run

    def noted(self: Batcher, examples) -> MicroBatch:
        passes.append((max(max(example.lengths) for example in examples), self.positions(examples)))
        return collate(self, examples)

    def begun(self: Trainer) -> dict[str, float]:
        nonlocal rehearsed
        rehearsed = len(passes)
        return run(self)

    monkeypatch.setattr(Batcher, "collate", noted)
    monkeypatch.setattr(Trainer, "run", begun)
    config = {**CONFIG, "micro_tokens": 128, "batching": "padded", "epochs": 2, "max_steps": None}
    train.run(make_stage(config, model=base_model, data=str(tmp_path / "rows.jsonl")))
    before, after = (
        [max(sizes) for sizes in zip(*part, strict=True)] for part in (passes[:rehearsed], passes[rehearsed:])
    )
    assert before == after
    assert after[1] > after[0] > 80


def test_other_errors_are_not_taken_for_want_of_memory(make_stage, base_model, monkeypatch):
    def broken(self: Update, batcher) -> None:
        raise RuntimeError("size mismatch")

    monkeypatch.setattr(Update, "rehearse", broken)
    with pytest.raises(RuntimeError, match="size mismatch"):
        train.run(make_stage(CONFIG, model=base_model))

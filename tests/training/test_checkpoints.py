"""A crash at any write, and any damage afterwards, leaves a checkpoint that loads."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import pytest
import torch

from steerboard_workers.stages.training import checkpoints as module
from steerboard_workers.stages.training.checkpoints import Checkpoints


class Crash(BaseException):
    """The process ends here: no clean-up of ours runs."""


def checkpoints(folder: Path, attempt: int = 1, signature: str = "s") -> Checkpoints:
    return Checkpoints(folder, attempt, [signature], log=lambda message: None)


def save(store: Checkpoints, step: int) -> Path:
    tensors = [("weight.w", torch.full((64, 64), float(step)))]
    return store.save(step, tensors, {"random": torch.arange(step)}, {"history": [{"step": step, "values": {}}]})


def check(folder: Path, allowed: set[int]) -> None:
    checkpoint = checkpoints(folder, attempt=9).load()
    assert checkpoint is not None
    assert checkpoint.step in allowed
    assert checkpoint.keys == ["weight.w"]
    assert torch.equal(dict(checkpoint.tensors())["weight.w"], torch.full((64, 64), float(checkpoint.step)))
    assert torch.equal(checkpoint.state["random"], torch.arange(checkpoint.step))
    assert checkpoint.record["history"] == [{"step": checkpoint.step, "values": {}}]


class Injector:
    """Counts operating-system calls and crashes in the n-th; a write then leaves half of its file."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, crash_at: int | None) -> None:
        self.calls = 0
        self._crash_at = crash_at
        for name in ("mkdir", "rename", "unlink", "rmdir", "fsync"):
            monkeypatch.setattr(os, name, self._before(getattr(os, name)))
        for holder, name in ((module, "save_file"), (module, "write"), (torch, "save")):
            monkeypatch.setattr(holder, name, self._within(getattr(holder, name)))

    def _before(self, real):
        def call(*args, **kwargs):
            self.calls += 1
            if self.calls == self._crash_at:
                raise Crash
            return real(*args, **kwargs)

        return call

    def _within(self, real):
        def call(*args, **kwargs):
            self.calls += 1
            crash, self._crash_at = self.calls == self._crash_at, self._crash_at
            if not crash:
                return real(*args, **kwargs)
            real(*args, **kwargs)
            path = next(a for a in args if isinstance(a, Path))
            os.truncate(path, path.stat().st_size // 2)
            raise Crash

        return call


def test_a_crash_at_every_write_leaves_a_loadable_latest(tmp_path, monkeypatch):
    prepared = tmp_path / "prepared"
    for step in (10, 20):
        save(checkpoints(prepared), step)
    with monkeypatch.context() as patch:
        counting = Injector(patch, None)
        shutil.copytree(prepared, tmp_path / "counted")
        before = counting.calls
        save(checkpoints(tmp_path / "counted"), 30)
        total = counting.calls - before
    assert total > 12
    for crash_at in range(1, total + 1):
        folder = tmp_path / f"crash-{crash_at}"
        shutil.copytree(prepared, folder)
        with monkeypatch.context() as patch:
            Injector(patch, crash_at)
            with pytest.raises(Crash):
                save(checkpoints(folder), 30)
        check(folder, {20, 30})
        save(checkpoints(folder, attempt=2), 40)  # and the next attempt continues
        check(folder, {40})


def test_the_very_first_checkpoint_is_all_or_nothing(tmp_path, monkeypatch):
    for crash_at in range(1, 30):
        folder = tmp_path / str(crash_at)
        with monkeypatch.context() as patch:
            injector = Injector(patch, crash_at)
            with contextlib.suppress(Crash):
                save(checkpoints(folder), 10)
        if checkpoints(folder).load() is not None:
            check(folder, {10})
        if injector.calls < crash_at:
            return
    raise AssertionError("more writes than expected")


@pytest.mark.parametrize("name", [module.TENSORS, module.STATE, module.RECORD, module.MANIFEST])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_damaged_checkpoint_is_skipped_with_a_line_that_says_so(tmp_path, name, damage):
    save(checkpoints(tmp_path), 10)
    path = save(checkpoints(tmp_path), 20) / name
    content = path.read_bytes()
    if damage == "flip":
        path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    else:
        path.unlink()
    lines: list[str] = []
    checkpoint = Checkpoints(tmp_path, 2, ["s"], lines.append).load()
    assert checkpoint.step == 10
    assert any("a1-step-00000020" in line for line in lines)


def test_two_checkpoints_are_kept_and_the_newest_attempt_wins(tmp_path):
    for step in (10, 20, 30):
        save(checkpoints(tmp_path), step)
    save(checkpoints(tmp_path, attempt=2), 30)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a1-step-00000030", "a2-step-00000030"]
    assert checkpoints(tmp_path).load().path.name == "a2-step-00000030"


def test_a_full_disk_keeps_the_old_checkpoint_and_leaves_no_partial_one(tmp_path, monkeypatch):
    save(checkpoints(tmp_path), 10)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "write", full)
    with pytest.raises(OSError, match="No space"):
        save(checkpoints(tmp_path), 20)
    assert [p.name for p in tmp_path.iterdir()] == ["a1-step-00000010"]


def test_a_large_checkpoint_is_written_in_pieces_and_none_of_them_may_be_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PIECE_BYTES", 100)
    tensors = {f"weight.{place}": torch.full((10,), float(place)) for place in range(7)}
    save(checkpoints(tmp_path), 10)
    path = checkpoints(tmp_path).save(20, iter(tensors.items()), {"random": torch.arange(2)}, {"history": []})
    assert len(list(path.glob("tensors-*"))) == 3
    checkpoint = checkpoints(tmp_path).load()
    assert sorted(checkpoint.keys) == sorted(tensors)
    assert all(torch.equal(tensor, tensors[name]) for name, tensor in checkpoint.tensors())
    (path / "tensors-00002.safetensors").unlink()
    assert checkpoints(tmp_path).load().step == 10


def test_checkpoints_of_another_config_are_not_taken(tmp_path):
    save(checkpoints(tmp_path), 10)
    assert checkpoints(tmp_path, signature="other").load() is None


def test_no_checkpoint_yet_is_none(tmp_path):
    assert checkpoints(tmp_path / "absent").load() is None

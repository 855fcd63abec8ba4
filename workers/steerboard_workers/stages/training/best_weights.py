"""The trained weights of the evaluation with the lowest held-out loss so far, on disk while training continues.

They are next to the checkpoints and are written like these. Each checkpoint holds those that were the best until then,
too: so an attempt that resumes, on whichever machine, ends with the best of the whole run.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from steerboard_contracts.errors import BadInput
from steerboard_contracts.files.disk import Disk, sync_folder
from steerboard_contracts.stage.checkpoints import CHECKPOINT_MANIFEST
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.watching.kept import kept_best
from steerboard_workers.alignment.batches.batch_source import BatchSource
from steerboard_workers.stages.distributed.strategies import Strategy
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.checkpoints import BEST, Restored, keys_of, link, tensors_of, write_pieces
from steerboard_workers.stages.training.data import TrainingData
from steerboard_workers.stages.training.evaluation import evaluations_every
from steerboard_workers.stages.training.from_main import from_main, tensors_from_main
from steerboard_workers.stages.training.steps import steps_of


def check_can_keep_best(config: TrainingConfig, data: TrainingData, source: BatchSource) -> None:
    """Raises `BadInput` (`nothing_to_choose`) where the best weights are to be kept and there are not several held-out
    losses to choose by."""
    if config.keep == "last":
        return
    if not data.held_out:
        raise BadInput(
            "keep best chooses by the held-out loss, and no row of the data is held out",
            code="nothing_to_choose",
            hint="Give data with held-out rows, or set keep to last.",
        )
    total = steps_of(config, source)
    if 0 < evaluations_every(config, total, data.evaluated) < total:
        return
    raise BadInput(
        f"keep best has nothing to choose from: training is evaluated only at its end, after step {total:,}",
        code="nothing_to_choose",
        hint="Set evaluate_every to fewer steps than that, or keep to last.",
    )


class BestWeights:
    """The best weights of one run, on each of its processes. The main one writes and reads the files."""

    def __init__(self, stage: Stage, sharing: Strategy) -> None:
        self._stage = stage
        self._sharing = sharing
        self._accelerator = sharing.accelerator
        self._home = stage.checkpoints
        self._disk = Disk(stage.checkpoints, "the best weights so far", stage.spec.disk_reserve_mb)
        self._loss: float | None = None
        # Where the main process has them, and their sums.
        self.files: dict[Path, str] = {}

    def look(self, losses: Sequence[tuple[int, float]]) -> None:
        """`losses`: those of all evaluations so far. Keeps the weights as they are if the last is the lowest."""
        best = kept_best(losses)
        if best is None or best.step != best.last_step or best.loss == self._loss:
            return
        self._loss = best.loss
        tensors = self._sharing.state(moments=False)
        if self._accelerator.is_main_process:
            self._place(best.step, lambda folder: dict(write_pieces(folder, tensors, self._disk, BEST)))
        else:
            for _ in tensors:
                pass  # gathering takes every process
        self._accelerator.wait_for_everyone()

    def resume(self, losses: Sequence[tuple[int, float]], restored: Restored | None) -> None:
        """Restores the state at a checkpoint, with the losses until then. The main process alone has `restored`."""
        best = kept_best(losses)
        self._loss = best.loss if best is not None else None
        if best is not None and restored is not None:
            sums = json.loads((restored.path / CHECKPOINT_MANIFEST).read_bytes())["files"]
            names = [path.name for path in restored.best]
            self._place(best.step, lambda folder: {link(restored.path / name, folder): sums[name] for name in names})

    def put_back(self, step: int) -> None:
        """Train no further: the weights are again those of the best evaluation, which was after `step` steps."""
        keys = from_main(self._accelerator, keys_of(self.files))
        tensors = tensors_from_main(self._accelerator, tensors_of(self.files))
        self._sharing.restore(tensors, set(keys), step)

    def _place(self, step: int, fill: Callable[[Path], dict[Path, str]]) -> None:
        """A folder that `fill` fills appears whole, then older ones go. Its name has the attempt, as those of
        checkpoints have."""
        attempt = self._stage.spec.attempt
        final = self._home / f"a{attempt}-best-{step:08d}"
        temporary = self._home / f".{final.name}.partial"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        try:
            sums = fill(temporary)
            sync_folder(temporary)
            shutil.rmtree(final, ignore_errors=True)
            temporary.rename(final)
            sync_folder(self._home)
        except Exception:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        self.files = {final / path.name: sha for path, sha in sums.items()}
        for older in self._home.glob("a*-best-*"):
            if older != final and int(older.name[1:].partition("-")[0]) <= attempt:
                shutil.rmtree(older, ignore_errors=True)

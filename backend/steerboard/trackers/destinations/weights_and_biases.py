"""W&B, on a server or as offline runs that `wandb sync` sends later.

W&B reports only at a run's `finish` that everything has arrived, so until then no step is confirmed. After a crash they
come again: W&B itself drops the steps that it has, and an offline run that was not finished is written again.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import wandb

from steerboard.trackers.destinations.protocol import Batch, Place, Written, finite

_INIT_SECONDS = 60.0
# In the folder of an offline run that is whole.
_WHOLE = "steerboard-complete"


class WeightsAndBiases:
    def __init__(self, place: Place) -> None:
        self._folder = place.folder
        self._offline = place.settings.get("mode") == "offline"
        self._entity = place.settings.get("entity") or None
        self._project = str(place.settings.get("project") or place.project)
        place.folder.mkdir(parents=True, exist_ok=True)
        # Its caches and its settings stay in the tracker's folder.
        for variable in ("WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR", "WANDB_ARTIFACT_DIR"):
            os.environ[variable] = str(place.folder)
        os.environ["NETRC"] = os.devnull
        if place.settings.get("url"):
            os.environ["WANDB_BASE_URL"] = str(place.settings["url"])
        if place.secret and not self._offline:
            os.environ["WANDB_API_KEY"] = place.secret
        self._open: dict[str, tuple[Any, int | None]] = {}

    def write(self, batch: Batch) -> Written:
        known = self._open.get(batch.run.id)
        run = known[0] if known else self._begin(batch)
        for step, values in batch.points:
            run.log(finite(values), step=step)
        self._open[batch.run.id] = (run, batch.last())
        if batch.end is None:
            return self._written(run, batch.run.id, None)
        run.summary.update({name: value for name, value in batch.end.summary.items() if _is_plain(value)})
        run.summary.update({f"steerboard/output/{name}": url for name, url in batch.end.outputs.items()})
        run.summary.update({"steerboard/state": batch.end.state, "steerboard/reason": batch.end.reason})
        written = self._written(run, batch.run.id, batch.last())
        self._finish(batch.run.id, exit_code=0 if batch.end.state == "succeeded" else 1)
        return written

    def close(self) -> dict[str, int | None]:
        confirmed = {}
        for id_, (_, last) in list(self._open.items()):
            self._finish(id_, exit_code=0)
            confirmed[id_] = last
        return confirmed

    def _begin(self, batch: Batch) -> Any:
        if self._offline:
            for folder in self._runs_of(batch.run.id):
                if not (folder / _WHOLE).exists():
                    shutil.rmtree(folder, ignore_errors=True)
        return wandb.init(
            project=self._project,
            entity=self._entity,
            name=batch.run.label,
            id=batch.run.id,
            group=batch.run.method or batch.run.kind,
            job_type=batch.run.kind,
            dir=str(self._folder),
            config={**batch.run.settings, "steerboard_url": batch.run.url},
            notes=f"Steerboard: {batch.run.url}",
            mode="offline" if self._offline else "online",
            resume=None if self._offline else "allow",
            reinit="create_new",
            settings=wandb.Settings(
                console="off",
                silent=True,
                disable_git=True,
                disable_code=True,
                save_code=False,
                init_timeout=_INIT_SECONDS,
                x_disable_stats=True,
                x_disable_machine_info=True,
                x_disable_meta=True,
            ),
        )

    def _finish(self, id_: str, exit_code: int) -> None:
        run, _ = self._open.pop(id_)
        folder = Path(run.settings.sync_dir)
        run.finish(exit_code=exit_code)
        if self._offline:
            (folder / _WHOLE).touch()

    def _written(self, run: Any, id_: str, confirmed: int | None) -> Written:
        if self._offline:
            return Written(id_, None, str(Path(run.settings.sync_dir)), confirmed)
        return Written(id_, run.url, None, confirmed)

    def _runs_of(self, id_: str) -> list[Path]:
        return sorted((self._folder / "wandb").glob(f"offline-run-*-{id_}"))


def _is_plain(value: Any) -> bool:
    return isinstance(value, int | float | str | bool)

"""Trackio's local database, which `trackio show` reads.

Rows go to its storage and not through `trackio.init`, which starts threads and a client for each run; and only there a
row has an id of ours, so that one that is sent again is kept once.
"""

from __future__ import annotations

import datetime as dt
import os
from typing import Any

from steerboard.trackers.destinations.protocol import Batch, Place, Written, finite


class Trackio:
    def __init__(self, place: Place) -> None:
        self._folder = place.folder
        self._project = str(place.settings.get("project") or place.project)
        place.folder.mkdir(parents=True, exist_ok=True)
        # Read when the package is imported.
        os.environ["TRACKIO_DIR"] = str(place.folder)
        from trackio.sqlite_storage import SQLiteStorage

        self._storage: Any = SQLiteStorage

    def write(self, batch: Batch) -> Written:
        run = batch.run
        config: dict[str, Any] = {**run.settings, "steerboard_url": run.url}
        rows = [(step, finite(values)) for step, values in batch.points]
        if batch.end is not None:
            config |= {"steerboard_state": batch.end.state, "steerboard_outputs": batch.end.outputs}
            summary = {f"result/{name}": value for name, value in batch.end.summary.items() if _is_number(value)}
            # Without a row, Trackio would not keep the config.
            rows.append((batch.last() or 0, finite(summary)))
        if rows:
            self._storage.bulk_log(
                project=self._project,
                run=run.label,
                run_id=run.id,
                metrics_list=[values for _, values in rows],
                steps=[step for step, _ in rows],
                timestamps=[_time(run.created_ms + step) for step, _ in rows],
                log_ids=[
                    f"{run.id}-{step}" if place < len(batch.points) else f"{run.id}-end-{run.attempt}"
                    for place, (step, _) in enumerate(rows)
                ],
                config=config,
            )
        return Written(run.id, None, str(self._folder), batch.last())

    def close(self) -> dict[str, int | None]:
        return {}


def _time(milliseconds: int) -> str:
    return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC).isoformat()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

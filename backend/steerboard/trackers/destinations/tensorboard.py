"""TensorBoard's event files, one folder a run.

tensorboardX's `SummaryWriter` writes from a thread, and its `flush` does not wait for what is queued there. The writer
below it is used, so that a batch is in the file when it counts as confirmed.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tensorboardX import summary
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog

from steerboard.trackers.destinations.protocol import Batch, Place, Written

# Files that are open at a time.
_MOST_OPEN = 32


class TensorBoard:
    def __init__(self, place: Place) -> None:
        self._folder = place.folder
        self._open: dict[str, EventsWriter] = {}

    def write(self, batch: Batch) -> Written:
        folder = self._folder / batch.run.label
        writer = self._open.get(batch.run.id) or self._begin(batch, folder)
        for step, values in batch.points:
            for name, value in values.items():
                _add(writer, batch, step, summary.scalar(name, value))
        if batch.end is not None:
            lines = [f"{batch.end.state}: {batch.end.reason}"]
            lines += [f"[{name}]({url})" for name, url in batch.end.outputs.items()]
            _add(writer, batch, batch.last() or 0, summary.text("steerboard/result", "\n\n".join(lines)))
        writer.flush()
        if batch.end is not None:
            self._open.pop(batch.run.id).close()
        return Written(batch.run.label, None, str(folder), batch.last())

    def close(self) -> dict[str, int | None]:
        for writer in self._open.values():
            writer.close()
        self._open.clear()
        return {}

    def _begin(self, batch: Batch, folder: Path) -> EventsWriter:
        """Another file of the run. What an exporter wrote after the last confirmed step before it was killed is
        replaced by it: TensorBoard drops what is at or behind the step of a session's start."""
        while len(self._open) >= _MOST_OPEN:
            self._open.pop(next(iter(self._open))).close()
        folder.mkdir(parents=True, exist_ok=True)
        earlier = any(folder.glob("events.out.tfevents.*"))
        # The name's own time is in seconds; a second file of one second would overwrite the first.
        writer = EventsWriter(str(folder / "events"), f".{time.time_ns()}")
        self._open[batch.run.id] = writer
        if earlier:
            begin = 0 if batch.after is None else batch.after + 1
            writer.write_event(Event(step=begin, session_log=SessionLog(status=SessionLog.START)))
        if batch.after is None:
            rows = "\n".join(f"| {name} | {_cell(value)} |" for name, value in batch.run.flat_settings().items())
            _add(writer, batch, 0, summary.text("steerboard/run", f"[{batch.run.label}]({batch.run.url})"))
            settings = f"| setting | value |\n| --- | --- |\n{rows}"
            _add(writer, batch, 0, summary.text("steerboard/settings", settings))
        return writer


def _add(writer: EventsWriter, batch: Batch, step: int, value: Any) -> None:
    """Its time follows from its step: points are read from the database, not when they were made."""
    writer.write_event(Event(wall_time=(batch.run.created_ms + step) / 1000, step=step, summary=value))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")

"""What trackers have, read by their own libraries or from their files."""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Points = dict[str, list[tuple[int, float]]]


def of_tensorboard(folder: Path) -> Points:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {
        name: [(point.step, round(point.value, 5)) for point in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


def texts_of_tensorboard(folder: Path) -> dict[str, str]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {
        tag.removesuffix("/text_summary"): b"".join(events.Tensors(tag)[0].tensor_proto.string_val).decode()
        for tag in events.Tags()["tensors"]
    }


def of_trackio(folder: Path, project: str = "default") -> tuple[Points, dict[str, Any]]:
    """The points, and the config of the only run."""
    points: Points = {}
    with sqlite3.connect(folder / f"{project}.db") as database:
        for step, metrics in database.execute("SELECT step, metrics FROM metrics ORDER BY step, id"):
            for name, value in json.loads(metrics).items():
                points.setdefault(name, []).append((step, round(value, 5)))
        ((config,),) = database.execute("SELECT config FROM configs").fetchall()
    return points, json.loads(config)


def of_wandb(folder: Path) -> tuple[Points, dict[str, Any], dict[str, Any]]:
    """The history, config and summary of an offline run."""
    from wandb.proto import wandb_internal_pb2

    (file,) = folder.glob("*.wandb")
    points: Points = {}
    config: dict[str, Any] = {}
    summary: dict[str, Any] = {}
    for data in _records(file.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        if record.HasField("history"):
            row = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
            step = int(row.pop("_step", record.history.step.num))
            for name, value in row.items():
                if not name.startswith("_"):
                    points.setdefault(name, []).append((step, round(value, 5)))
        if record.HasField("run"):
            config |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
        if record.HasField("summary"):
            for item in record.summary.update:
                summary[item.key or "/".join(item.nested_key)] = json.loads(item.value_json)
    return points, config, summary


def _records(content: bytes) -> Iterator[bytes]:
    """LevelDB's log format: blocks of 32 KiB, in which each part of a record has a header of a checksum, its size and
    whether it is whole, or the first, a middle or the last one."""
    assert content[:4] == b":W&B"
    at, whole = 7, b""
    while at + 7 <= len(content):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        _, size, part = struct.unpack_from("<IHB", content, at)
        whole += content[at + 7 : at + 7 + size]
        at += 7 + size
        if part in (1, 4):
            yield whole
            whole = b""

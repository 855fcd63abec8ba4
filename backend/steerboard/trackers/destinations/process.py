"""The process that talks to one tracker: `python -m steerboard.trackers.destinations.process CHANNEL`.

It has no credentials of the platform, and opens nothing but the tracker's own folder and address. The first line on
the channel names the tracker; each further one is a batch, and is answered by a line.
"""

from __future__ import annotations

import json
import logging
import socket
import sys
from pathlib import Path
from typing import Any

from steerboard.trackers.destinations.protocol import Batch, Destination, NotExported, Place

log = logging.getLogger("steerboard.trackers")

# tensorboardX imports it if it can, for tensors, which takes seconds and hundreds of megabytes.
_UNUSED = ("torch",)
_SHOWN = 500


def open_destination(kind: str, place: Place) -> Destination:
    """The tracker's library is imported here and nowhere else."""
    for unused in _UNUSED:
        sys.modules.setdefault(unused, None)  # type: ignore[arg-type]
    if kind == "mlflow":
        from steerboard.trackers.destinations.mlflow import Mlflow

        return Mlflow(place)
    if kind == "tensorboard":
        from steerboard.trackers.destinations.tensorboard import TensorBoard

        return TensorBoard(place)
    if kind == "trackio":
        from steerboard.trackers.destinations.trackio import Trackio

        return Trackio(place)
    from steerboard.trackers.destinations.weights_and_biases import WeightsAndBiases

    return WeightsAndBiases(place)


def main(arguments: list[str]) -> int:
    channel = socket.socket(fileno=int(arguments[0]))
    logging.basicConfig(level="INFO", format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    for noisy in ("httpx", "httpcore"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    lines = channel.makefile("r", encoding="utf-8")
    request = json.loads(lines.readline())
    place = Place(
        settings=request["settings"],
        secret=request["secret"],
        folder=Path(request["folder"]),
        allowed=request["allowed"],
        project=request["project"],
    )
    destination: Destination | None = None
    for line in lines:
        value = json.loads(line)
        answer: dict[str, Any]
        try:
            if destination is None:
                destination = open_destination(request["settings"]["kind"], place)
            if value is None:
                answer = {"closed": destination.close()}
            else:
                answer = {"written": vars(destination.write(Batch.read(value)))}
        except Exception as error:
            answer = {"error": _worded(error, place.secret)}
        channel.sendall(json.dumps(answer).encode() + b"\n")
    return 0


def _worded(error: Exception, secret: str | None) -> str:
    text = str(error) if isinstance(error, NotExported) else f"{type(error).__name__}: {error}"
    if secret:
        text = text.replace(secret, "…")
    return " ".join(text.replace("\x00", "").split())[:_SHOWN]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

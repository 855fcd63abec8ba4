"""The exporter's side of a tracker's process (`trackers.destinations.process`)."""

from __future__ import annotations

import json
import signal
import socket
import sys
import uuid
from typing import Any

from steerboard.platform.processes.child_process import Guarded, GuardedSpec, log_tail
from steerboard.platform.settings import Settings
from steerboard.trackers.destinations.protocol import Batch, NotExported, Written
from steerboard.trackers.exporting.due import Claimed

# A batch of a slow server, or the last upload of a W&B run.
BATCH_SECONDS = 90.0
_CLOSE_SECONDS = 60.0


class Channel:
    """A process under a guardian, which ends with this one. `sent`: by run, the last step that it was given."""

    def __init__(self, settings: Settings, claimed: Claimed, secret: str | None) -> None:
        """Raises `ServerFailed`."""
        self.sent: dict[uuid.UUID, int | None] = {}
        self._socket, remote = socket.socketpair()
        folder = settings.home / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        with remote:
            spec = GuardedSpec(
                name=f"the exporter to {claimed.kind}",
                command=[sys.executable, "-m", "steerboard.trackers.destinations.process", str(remote.fileno())],
                log=folder / "trackers.log",
                # What was not confirmed is sent again.
                stop=[(signal.SIGKILL, 5.0)],
                public=True,
                inherit=[remote.fileno()],
            )
            self._process = Guarded(spec)
        self._answers = self._socket.makefile("rb")
        request = {
            "settings": claimed.settings | {"kind": claimed.kind},
            "secret": secret,
            "folder": str(claimed.folder),
            "allowed": settings.allowed_private,
            "project": claimed.project,
        }
        self._socket.sendall(json.dumps(request).encode() + b"\n")

    def write(self, run_id: uuid.UUID, batch: Batch) -> Written:
        """Raises `NotExported`; after that the process is no longer of use."""
        written = Written(**self._ask(batch.json(), BATCH_SECONDS)["written"])
        self.sent[run_id] = batch.last()
        return written

    def close(self) -> dict[uuid.UUID, int | None]:
        """The steps that its end has confirmed. Raises `NotExported`."""
        closed = self._ask(None, _CLOSE_SECONDS)["closed"]
        return {uuid.UUID(run): step for run, step in closed.items()}

    def stop(self) -> None:
        self._answers.close()
        self._socket.close()
        self._process.stop()

    def _ask(self, value: Any, seconds: float) -> dict[str, Any]:
        self._socket.settimeout(seconds)
        try:
            self._socket.sendall(json.dumps(value).encode() + b"\n")
            answer = self._answers.readline()
        except TimeoutError:
            raise NotExported(f"no answer within {seconds:.0f} s") from None
        except OSError:
            answer = b""
        if not answer.endswith(b"\n"):
            last = log_tail(self._process.spec.log, 1)
            raise NotExported("the process of the tracker ended" + (f": {last}" if last else ""))
        reply: dict[str, Any] = json.loads(answer)
        if "error" in reply:
            raise NotExported(str(reply["error"]))
        return reply

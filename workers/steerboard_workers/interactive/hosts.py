"""A model's process as the worker sees it: asked one thing at a time, with a time limit, and ended when it hangs.

It runs what users have brought: weights, a chat template, a tokenizer. So it knows no credentials, may use only so much
memory, and dies with the worker; whatever it does costs its own model's answers and no one else's.
"""

from __future__ import annotations

import logging
import os
import queue
import select
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from pydantic import BaseModel, ValidationError

from steerboard.platform.database import new_id
from steerboard.platform.settings import Settings
from steerboard_contracts import guardian
from steerboard_contracts.decoding import Decoding
from steerboard_contracts.errors import OutOfMemory, SteerboardError
from steerboard_contracts.stage.events import Failed
from steerboard_workers.alignment.rendering.templates import Prompt
from steerboard_workers.cpu_threads import THREAD_VARIABLES
from steerboard_workers.engines.protocol import Delta
from steerboard_workers.engines.protocol import Request as Prompted
from steerboard_workers.model_host.messages import (
    ANSWER,
    Answer,
    Done,
    Failure,
    Generate,
    Load,
    Loaded,
    Ready,
    Request,
    Score,
    Scored,
    Stop,
    Written,
)
from steerboard_workers.stage_parent.identity import MARK
from steerboard_workers.supervisor.failure_diagnosis import in_words, speaks_of_memory
from steerboard_workers.supervisor.process import GuardedProcess
from steerboard_workers.supervisor.warm_start import StageParent

log = logging.getLogger(__name__)

Wanted = Callable[[], None]
"""Called again and again while something is waited for; raises when no one wants it any more."""

# How often it is asked whether an answer is still wanted.
LOOK_SECONDS = 0.2
# What is asked to stop and does not within this time hangs.
_STOP_SECONDS = 1.0
# After so long without a sign of the worker, it is gone or frozen.
_LEASE_SECONDS = 10.0
_QUEUE_ANSWERS = 50_000
# All that a model's process gets of the worker's environment.
_NEEDED = {"PATH", "HOME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV"}
_NEEDED_PREFIXES = ("LC_", "CUDA_", "NVIDIA_", "HIP_", "ROCR_", "PYTORCH_", "KMP_")


class ModelTimedOut(SteerboardError):
    """A model's process was ended because it took too long."""

    code = "model_timed_out"
    title = "The model took too long"


class ModelCrashed(SteerboardError):
    """A model's process ended by itself."""

    code = "model_crashed"
    title = "The model crashed"


class ModelOutgrew(SteerboardError):
    """A model's process was ended because it used more memory than it may. Another try would end alike."""

    code = "out_of_memory"
    title = "Out of memory"


class ModelHost(GuardedProcess):
    """One process for one model, which `load` names. Of all methods one at a time; `extend_lease` from any thread."""

    def __init__(self, settings: Settings, *, memory: int, threads: int, parent: StageParent | None = None) -> None:
        self.name = "a model"
        self.ready: Ready | None = None
        self._settings = settings
        self._answers: queue.Queue[Answer] = queue.Queue(_QUEUE_ANSWERS)
        read, self._requests = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._requests, False)
        super().__init__(
            [sys.executable, "-m", "steerboard_workers.model_host", str(read)],
            Path("/"),
            environment(f"playground-{new_id()}:1", threads),
            memory=memory,
            inherits=[read],
            parent=parent,
        )
        os.close(read)
        self.extend_lease()

    def extend_lease(self) -> None:
        """Call it every second or so: without it the process takes the worker for lost, and ends."""
        self.extend(guardian.now() + _LEASE_SECONDS)

    def wait_until_ready(self, wanted: Wanted) -> Ready:
        """Raises `ModelTimedOut`, `ModelCrashed`, and what `wanted` does."""
        while self.ready is None:
            for answer in self._listen(wanted, self._settings.interactive_seconds):
                if isinstance(answer, Failure):
                    raise self._failed(answer)
                if isinstance(answer, Ready):
                    self.ready = answer
                    break
        return self.ready

    def load(self, name: str, folder: Path, *, reward: bool, wanted: Wanted) -> Loaded:
        """Raises what loading does, and as `wait_until_ready`."""
        self.name = name
        self.wait_until_ready(wanted)
        # Reading a large model from a slow disk gives no sign for long.
        silence = self._settings.interactive_seconds
        answers = self._ask(Load(folder=str(folder), task="score" if reward else "generate"), wanted, silence)
        return next(answer for answer in list(answers) if isinstance(answer, Loaded))

    def generate(
        self,
        requests: Sequence[Prompted],
        decoding: Decoding,
        seed: int,
        on_delta: Callable[[Delta], None],
        wanted: Wanted,
    ) -> None:
        """Write all answers, giving `on_delta` each piece. Raises `ModelTimedOut`, `ModelCrashed`, `OutOfMemory`, what
        the engine raises, and what `on_delta` and `wanted` do: then the process stops writing, or is ended."""
        request = Generate(requests=list(requests), decoding=decoding, seed=seed)
        with closing(self._ask(request, wanted, self._settings.interactive_stall_seconds)) as answers:
            for answer in answers:
                if isinstance(answer, Written):
                    on_delta(answer.delta)

    def score(self, samples: Sequence[tuple[Prompt, str]], wanted: Wanted) -> list[float]:
        """One raw reward for each (prompt, answer). Raises as `generate`."""
        request = Score.model_validate({"samples": samples})
        answers = list(self._ask(request, wanted, self._settings.interactive_stall_seconds))
        return next(answer.rewards for answer in answers if isinstance(answer, Scored))

    def close(self) -> None:
        """End it, however it is."""
        self.end()
        if self._requests >= 0:
            os.close(self._requests)
            self._requests = -1

    def hear(self, line: bytes) -> None:
        try:
            self._answers.put(ANSWER.validate_json(line))
        except ValidationError:
            log.warning("%s: not an answer: %s", self.name, line[:200])

    def overhear(self, text: str) -> None:
        log.info("%s: %s", self.name, text)

    # -- one conversation -----------------------------------------------------------------------------------------

    def _ask(self, request: Request, wanted: Wanted, silence: float) -> Generator[Answer]:
        """Answers to one request. However the caller leaves it, the next request finds the process idle, or ended."""
        try:
            self._send(request, wanted)
        except BaseException:
            self.kill()  # it may have half of the request
            raise
        over = False
        try:
            for answer in self._listen(wanted, silence):
                over = isinstance(answer, Done | Failure)
                if isinstance(answer, Failure):
                    raise self._failed(answer)
                if over:
                    return
                yield answer
        finally:
            if not over and not self.killed:
                self._stop()

    def _listen(self, wanted: Wanted, silence: float) -> Iterator[Answer]:
        """Its messages, until it has sent none for `silence` seconds, or the whole takes too long."""
        last = time.monotonic() + self._settings.interactive_seconds
        heard = time.monotonic()
        while True:
            try:
                answer = self._answers.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                wanted()
                if self.ended(0) and self._said_all():
                    raise self._died() from None
                now = time.monotonic()
                if now - heard > silence:
                    raise self._too_slow(f"did not respond for {silence:g} seconds") from None
            else:
                yield answer
                heard = now = time.monotonic()
            if now > last:
                raise self._too_slow(f"did not finish within {self._settings.interactive_seconds:g} seconds")

    def _send(self, request: BaseModel, wanted: Wanted) -> None:
        data = (request.model_dump_json() + "\n").encode()
        last = time.monotonic() + self._settings.interactive_stall_seconds
        while data:
            wanted()
            if self.ended(0):
                raise self._died()
            if time.monotonic() > last:
                raise self._too_slow("did not accept a request")
            if select.select([], [self._requests], [], LOOK_SECONDS)[1]:
                try:
                    data = data[os.write(self._requests, data) :]
                except BrokenPipeError:
                    continue  # its guardian will say how it ended

    def _stop(self) -> None:
        """No one waits for the request in hand any more: it has a moment to end by itself."""
        last = time.monotonic() + _STOP_SECONDS
        try:
            self._send(Stop(), lambda: None)
            while not self.ended(0) and time.monotonic() < last:
                try:
                    answer = self._answers.get(timeout=0.05)
                except queue.Empty:
                    continue
                if isinstance(answer, Done) or (isinstance(answer, Failure) and not answer.ends):
                    return
        except SteerboardError:
            pass
        log.warning("%s did not stop when requested, and is killed", self.name)
        self.kill()

    def _said_all(self) -> bool:
        """Whether nothing more can come of a process that has ended."""
        self.join_readers(1.0)
        return self._answers.empty()

    # -- ends -----------------------------------------------------------------------------------------------------

    def _failed(self, failure: Failure) -> SteerboardError:
        if failure.ends:
            self.kill()
        return _error_of(failure.failed)

    def _too_slow(self, what: str) -> ModelTimedOut:
        self.kill()
        return ModelTimedOut(
            f"{self.name} {what}, so its process was ended.",
            hint="Its template or tokenizer may hang. If it is just slow, raise STEERBOARD_INTERACTIVE_STALL_SECONDS.",
        )

    def _died(self) -> SteerboardError:
        kind, _, figure = (self.status or "").partition(" ")
        if kind == "memory":
            return ModelOutgrew(
                f"{self.name} used {int(figure) >> 20:,} MB of memory, more than it may, so its process was ended.",
                hint="Ask for fewer columns or shorter answers. STEERBOARD_STAGE_MEMORY_MB is the limit.",
            )
        how = in_words(self.status) if self.status and kind != "lease" else "SIGKILL"
        if speaks_of_memory(self.tail):
            return OutOfMemory(f"{self.name} ran out of memory. Its process ended with {how}.")
        last = " ".join(self.tail[-3:])[-300:]
        return ModelCrashed(
            f"The process of {self.name} ended with {how}." + (f" Its last output: {last}" if last else ""),
            hint="Ask again to restart it. The interactive worker's log has the details.",
        )


def _error_of(failed: Failed) -> SteerboardError:
    kind = OutOfMemory if failed.code == OutOfMemory.code else SteerboardError
    return kind(failed.detail, code=failed.code, hint=failed.hint, errors=failed.errors)


def environment(mark: str, threads: int) -> dict[str, str]:
    """The listed variables of the worker's environment, and nothing else."""
    kept = {name: value for name, value in os.environ.items() if name in _NEEDED or name.startswith(_NEEDED_PREFIXES)}
    limits = dict.fromkeys(THREAD_VARIABLES, str(threads))
    return kept | limits | {MARK: mark, "PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1"}

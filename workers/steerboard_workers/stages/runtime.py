"""What a stage sees of the world: its spec, its input files, its outputs and one stream of events.

A stage never talks to a database. It reads the files that `stage.json` names, writes under `outputs/`
(temporary name first, renamed when complete) and emits JSON lines on the descriptor that was its standard output.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NoReturn

from pydantic import BaseModel, ValidationError

from steerboard_contracts.errors import BadInput, BadRow, SteerboardError
from steerboard_contracts.files.disk import sync_folder
from steerboard_contracts.samples import sample_problems
from steerboard_contracts.stage.events import Checkpointed, Failed, Log, Metrics, Progress, Spent
from steerboard_contracts.stage.inputs import (
    ComparisonsInput,
    DatasetInput,
    ModelInput,
    PromptsInput,
    ResponsesInput,
    StageInput,
)
from steerboard_contracts.stage.spec import STAGE_FILE, StageSpec
from steerboard_contracts.watching.ledger import PHASES
from steerboard_workers.alignment.rendering.day import pin_day
from steerboard_workers.phases import Phases

Rows = Iterator[dict[str, Any]]

OUTPUTS = "outputs"
CHECKPOINTS = "checkpoints"
# One per process, recording what it does with a model's files while it does it.
MODEL_MARKS = "model-in-use"
# A terminal bar needs no more, and a fast stage must not flood the supervisor's pipe.
PROGRESS_SECONDS = 0.2
# How often the ledger is passed on, which is what a kill may lose of it.
SPENT_SECONDS = 1.0


def world_rank() -> int:
    """This process's rank under torchrun, 0 without it."""
    return int(os.environ.get("RANK", "0"))


class EventWriter:
    """Writes events as JSON lines to one descriptor; only rank 0 speaks, except for failures."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take_stdout(cls) -> EventWriter:
        """Keep the real standard output for events and send stray prints to standard error."""
        descriptor = os.dup(1)
        os.set_inheritable(descriptor, False)
        os.dup2(2, 1)
        return cls(descriptor)

    def write(self, event: BaseModel, *, any_rank: bool = False) -> None:
        if world_rank() != 0 and not any_rank:
            return
        line = (event.model_dump_json() + "\n").encode()
        while line:
            line = line[os.write(self._descriptor, line) :]


class Stage:
    """One attempt at one run. `directory` holds stage.json, checkpoints/ and outputs/. `phases` is where everything
    that takes time is measured."""

    def __init__(self, directory: Path, spec: StageSpec, events: EventWriter) -> None:
        self.directory = directory
        self.spec = spec
        self._events = events
        self.phases = Phases()
        self.started = time.monotonic()
        self._last_progress: tuple[str, float] = ("", 0.0)
        self._last_spent = 0.0

    @classmethod
    def open(cls, directory: Path, events: EventWriter) -> Stage:
        """Pins the day that chat templates write. Raises `BadInput` (`bad_stage_file`) when stage.json is absent or
        breaks its schema."""
        try:
            spec = StageSpec.model_validate_json((directory / STAGE_FILE).read_bytes())
        except FileNotFoundError as error:
            raise BadInput(f"{directory} has no {STAGE_FILE}", code="bad_stage_file") from error
        except ValidationError as error:
            raise BadInput(f"{STAGE_FILE} is not valid: {sample_problems(error)}", code="bad_stage_file") from error
        pin_day(spec.day)
        return cls(directory, spec, events)

    @property
    def checkpoints(self) -> Path:
        return self.directory / CHECKPOINTS

    # -- events ---------------------------------------------------------------------------------------------------

    def emit(self, event: BaseModel) -> None:
        self._events.write(event)
        if time.monotonic() - self._last_spent >= SPENT_SECONDS:
            self.spent()

    def spent(self) -> None:
        """Pass on what the phases have taken so far. A method may measure others, which the ledger does not have."""
        self._last_spent = time.monotonic()
        known = {name: phase for name, phase in self.phases.so_far().items() if name in PHASES}
        self._events.write(Spent(phases=known))

    def progress(self, done: int, total: int, unit: str, phase: str = "") -> None:
        """`unit` is plural. Calls in quick succession are dropped, never the first or last of a phase."""
        phase_before, at = self._last_progress
        now = time.monotonic()
        if phase == phase_before and done < total and now - at < PROGRESS_SECONDS:
            return
        self._last_progress = (phase, now)
        self.emit(Progress(done=done, total=total, unit=unit, phase=phase))

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        self.emit(Metrics(step=step, values=dict(values)))

    def log(self, message: str, level: Literal["info", "warning", "error"] = "info") -> None:
        self.emit(Log(level=level, message=message))

    def give_up(self, error: SteerboardError) -> NoReturn:
        """Say why and end the process at once, from whichever thread: the one that works hangs."""
        self._events.write(failed(error), any_rank=True)
        os._exit(1)

    def checkpointed(self, step: int, path: Path) -> None:
        self.emit(Checkpointed(step=step, path=str(path.relative_to(self.directory))))

    @contextmanager
    def using_model(self, name: str, doing: str) -> Iterator[None]:
        """Around what libraries do with the files of input `name`. Native code that these break takes the process with
        it, or hangs: meanwhile a file records what it was `doing` (opening, tokenising with)."""
        mark = self.directory / f"{MODEL_MARKS}.{world_rank()}"
        known = name in self.spec.inputs
        mark.write_text(f"{doing} the model {self.model(name).name}" if known else f"{doing} the model")
        try:
            yield
        finally:
            mark.unlink(missing_ok=True)

    # -- inputs ---------------------------------------------------------------------------------------------------

    def _input(self, name: str) -> StageInput:
        if name not in self.spec.inputs:
            raise BadInput(f"stage {self.spec.name} needs an input named {name}", code="missing_input")
        return self.spec.inputs[name]

    def has_input(self, name: str) -> bool:
        return name in self.spec.inputs

    def input_names(self, prefix: str) -> list[str]:
        """Names `prefix.0`, `prefix.1`, ... that are present, in order of their number."""
        names = [name for name in self.spec.inputs if name.startswith(f"{prefix}.")]
        return sorted(names, key=lambda name: int(name.rsplit(".", 1)[1]))

    def dataset(self, name: str) -> DatasetInput:
        given = self._input(name)
        if not isinstance(given, DatasetInput):
            raise BadInput(f"input {name} must be a dataset, not {given.type}", code="wrong_input_type")
        return given

    def model(self, name: str) -> ModelInput:
        given = self._input(name)
        if not isinstance(given, ModelInput):
            raise BadInput(f"input {name} must be a model, not {given.type}", code="wrong_input_type")
        return given

    def path(self, path: str) -> Path:
        """Inputs may be given relative to the stage directory."""
        return self.directory / path

    def model_path(self, name: str) -> Path:
        return self.path(self.model(name).path)

    def rows(self, name: str) -> Iterator[dict[str, Any]]:
        """Rows of a dataset input, in order, one at a time. Raises `BadRow` naming the line that is not an object."""
        return self._lines(self.dataset(name))

    def evaluated(self, name: str) -> Iterator[dict[str, Any]]:
        """Lines of an input of prompts, responses or comparisons, likewise."""
        given = self._input(name)
        if not isinstance(given, PromptsInput | ResponsesInput | ComparisonsInput):
            raise BadInput(f"input {name} must be of an evaluation, not a {given.type}", code="wrong_input_type")
        return self._lines(given)

    def _lines(self, given: DatasetInput | PromptsInput | ResponsesInput | ComparisonsInput) -> Rows:
        with self.path(given.path).open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise BadRow(f"{given.name}: line {number} is not JSON ({error})") from error
                if not isinstance(row, dict):
                    raise BadRow(f"{given.name}: line {number} is not an object")
                yield row

    # -- outputs --------------------------------------------------------------------------------------------------

    @contextmanager
    def output_file(self, name: str) -> Iterator[Path]:
        """A path to write to; it becomes `outputs/NAME` when the block ends well, and vanishes otherwise."""
        final, temporary = self._output(name)
        try:
            yield temporary
            sync_file(temporary)
            temporary.replace(final)
            sync_folder(final.parent)
        finally:
            temporary.unlink(missing_ok=True)

    @contextmanager
    def output_folder(self, name: str) -> Iterator[Path]:
        """An empty folder to fill; it becomes `outputs/NAME` when the block ends well, and vanishes otherwise."""
        final, temporary = self._output(name)
        temporary.mkdir()
        try:
            yield temporary
            for path in sorted(temporary.rglob("*")):
                if path.is_file():
                    sync_file(path)
            shutil.rmtree(final, ignore_errors=True)
            temporary.rename(final)
            sync_folder(final.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def output_path(self, name: str) -> str:
        """How an output is named in `Succeeded`: relative to the stage directory."""
        return f"{OUTPUTS}/{name}"

    def _output(self, name: str) -> tuple[Path, Path]:
        folder = self.directory / OUTPUTS
        folder.mkdir(exist_ok=True)
        temporary = folder / f".{name}.partial"
        if temporary.is_dir():
            shutil.rmtree(temporary)
        else:
            temporary.unlink(missing_ok=True)
        return folder / name, temporary


def failed(error: SteerboardError) -> Failed:
    """The last event of a stage that an error of ours ended."""
    return Failed(
        code=error.code,
        detail=error.detail,
        hint=error.hint,
        errors=error.errors,
        retryable=error.retryable,
        fix=error.extra.get("fix"),
    )


def sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())

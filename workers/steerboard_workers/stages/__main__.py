"""`python -m steerboard_workers.stages DIR`: run the stage that DIR/stage.json describes.

Exit code 0 after a `succeeded` line, 1 after a `failed` line. A traceback goes to standard error, never into an event.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
import traceback
from pathlib import Path

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.run_kinds import stage_modules
from steerboard_contracts.stage.events import Failed
from steerboard_workers.stages.oom import ran_out_of_memory
from steerboard_workers.stages.runtime import EventWriter, Stage, failed

# Imported when needed: a mix stage must not pay for torch.
MODULES = stage_modules()
FULL_DISK = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}
DISK_SIGNS = ("no space left", "file too large", "disk quota exceeded", "enforce fail at inline_container")


def failure_of(error: BaseException) -> Failed:
    """The event that reports why a stage ended. Unknown errors become `stage_crashed`."""
    if isinstance(error, SteerboardError):
        return failed(error)
    text = str(error).lower()
    if (isinstance(error, OSError) and error.errno in FULL_DISK) or any(sign in text for sign in DISK_SIGNS):
        return Failed(
            code="no_space_left",
            detail="The disk or a quota is full.",
            hint="Free some space where the worker keeps its runs, then resume the run.",
            retryable=True,
        )
    if ran_out_of_memory(error):
        return Failed(
            code="out_of_memory",
            detail="The stage ran out of memory.",
            hint="Lower micro_tokens or batch_size, turn gradient_checkpointing on, or use a larger worker.",
            retryable=True,
        )
    if is_panic(error):
        return Failed(
            code="broken_tokenizer",
            detail=f"The model's tokenizer crashed: {str(error)[:300]}",
            hint="Load the tokenizer by itself and encode a text with it; then save it again.",
        )
    return Failed(
        code="stage_crashed",
        detail=f"{type(error).__name__}: {str(error)[:500]}",
        hint="The worker's log has the traceback.",
        retryable=True,
    )


def is_panic(error: BaseException) -> bool:
    """Whether a library that is written in Rust met what it was sure could not happen. Such a library is the one of
    tokenizers; what it has raised is, on purpose, no `Exception`, and nothing of its state can be relied on."""
    return type(error).__name__ == "PanicException"


# A log is not a terminal: no progress bars, no advice. Forking workers after tokenising is not done here.
QUIET = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "true"}


def main(directory: Path) -> int:
    events = EventWriter.take_stdout()
    stage: Stage | None = None
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        stage = Stage.open(directory, events)
        if stage.spec.threads:
            # Before torch is imported, so that OpenMP and MKL start no more than this.
            for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
                os.environ[name] = str(stage.spec.threads)
        module = importlib.import_module(MODULES[stage.spec.kind])
        result = module.run(stage)
        stage.spent()
        events.write(result)
    except BrokenPipeError:
        return 1  # no one listens any more: the guardian is about to end this process group
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        traceback.print_exc()
        if stage is not None:
            stage.spent()
        events.write(failure_of(error), any_rank=True)
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: python -m steerboard_workers.stages DIR", file=sys.stderr)
        sys.exit(2)
    code = main(Path(sys.argv[1]))
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        # One process of several is at its end first, and threads that still talk to it would end the others by SIGABRT
        # while their interpreters are torn down: a failure after all that was asked for is written.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)

"""`python -m steerboard_workers.stage_parent LISTENING_DESCRIPTOR ROOM`: fork stage processes for a worker.

It imports what stages use, and from then on only accepts connections and forks: each fork reads what is asked of it,
and becomes a guardian with the stage below it. It runs no threads, no operation of torch and no CUDA, which would not
survive a fork; and it reads nothing, so that no fork finds in its memory what another run was given.

A connection stays open for as long as the worker needs the guardian's process id to be no one else's. Standard input is
a pipe that the worker holds: at its end, this process ends. The stages do not need it any more.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import select
import socket
import sys
from pathlib import Path

from steerboard_workers.stage_parent.adoption import PROGRAMS, Image, Program, become, stamp
from steerboard_workers.stage_parent.identity import MARK_ROOM, NoRoom, set_command_line, set_mark
from steerboard_workers.stages.__main__ import MODULES, QUIET

_BY_NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"
_OURS = ("steerboard_contracts", "steerboard_statistics", "steerboard_workers")
# What stages import only when they have seen their model.
_LATER = (
    "steerboard_workers.model_host.serving",
    "transformers.models.auto.modeling_auto",
    "transformers.models.llama.modeling_llama",
    "transformers.models.qwen2.modeling_qwen2",
)


def prepare() -> Image:
    """Import everything; what is not installed, a stage will miss by itself."""
    given = dict(os.environ)
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    # All of it stays: to look for garbage in between takes a fifth of the time.
    gc.disable()
    # Whether there is a GPU may be asked by an import; of NVML, for CUDA's own answer would initialise it.
    os.environ[_BY_NVML] = "1"
    for module in (*MODULES.values(), *_LATER):
        if _orphaned():
            sys.exit(0)
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    os.environ.pop(_BY_NVML)
    if _BY_NVML in given:
        os.environ[_BY_NVML] = given[_BY_NVML]
    if _open_devices() or ("torch" in sys.modules and sys.modules["torch"].cuda.is_initialized()):
        sys.exit("there is no stage parent: an import has initialised CUDA, which does not survive a fork")
    # Forks share what is never written to.
    gc.collect()
    gc.freeze()
    gc.enable()
    return Image(given, _sources())


def serve(listener: socket.socket, image: Image) -> Program:
    """Returns in forks alone."""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(listener, select.POLLIN)
    forks: dict[int, tuple[socket.socket, int]] = {}
    ended: set[int] = set()
    while True:
        for descriptor, _ in poll.poll(1000 if ended else None):
            if descriptor == 0:
                sys.exit(0)
            if descriptor != listener.fileno():
                connection, pid = forks.pop(descriptor)
                poll.unregister(descriptor)
                connection.close()
                ended.add(pid)
                continue
            connection, _ = listener.accept()
            try:
                pid = os.fork()
            except OSError:
                connection.close()
                continue
            if pid == 0:
                # Their numbers will be other files'.
                for owned in (listener, *(connection for connection, _ in forks.values())):
                    owned.detach()
                return become(connection, image)
            # Its end, not what is written to it, which is for the fork.
            poll.register(connection, select.POLLRDHUP)
            forks[connection.fileno()] = connection, pid
        ended = {pid for pid in ended if os.waitpid(pid, os.WNOHANG)[0] == 0}


def _open_devices() -> list[str]:
    links = [Path(f"/proc/self/fd/{entry}") for entry in os.listdir("/proc/self/fd")]
    return [str(link) for link in links if link.is_symlink() and str(link.readlink()).startswith("/dev/nvidia")]


def _orphaned() -> bool:
    return bool(select.select([0], [], [], 0)[0])


def _sources() -> dict[str, tuple[int, int]]:
    """The sources of our packages, and of whatever else is not installed once for all."""
    stamps = {}
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if not path:
            continue
        installed = "site-packages" in path or path.startswith(sys.base_prefix)
        if name.partition(".")[0] in _OURS or not installed:
            stamps[path] = stamp(path)
    return stamps


def main(descriptor: int) -> int:
    try:
        set_mark(MARK_ROOM)
        set_command_line([sys.executable, "-m", "steerboard_workers.stage_parent"])
    except NoRoom as error:
        print(f"stages are started without a parent: {error}", file=sys.stderr)
        return 1
    program = serve(socket.socket(fileno=descriptor), prepare())
    started = importlib.import_module(f"{program.module}.__main__")
    sys.argv = [started.__file__ or program.module, program.argument]
    status: int = started.main(PROGRAMS[program.module](program.argument))
    # To take down module by module what all forks share would copy it first.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))

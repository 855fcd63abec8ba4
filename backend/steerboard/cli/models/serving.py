"""`steerboard models serve`: vLLM's own server on a model of the registry, known to the project as an endpoint."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any
from urllib.parse import quote

import httpx
import typer
from rich.console import Console

from steerboard.cli.client import ApiError, Client
from steerboard.cli.models.files import download_model
from steerboard.platform.processes.child_process import Guarded, GuardedSpec, ServerFailed, log_tail
from steerboard.platform.processes.environments import our_packages
from steerboard.platform.processes.vllm import require_python
from steerboard.platform.settings import get_settings
from steerboard.platform.storage import scratch
from steerboard_contracts import guided_vllm
from steerboard_contracts.errors import BadInput, EngineMissing
from steerboard_contracts.models import POLICIES, vllm_rank

_ANYWHERE = ("0.0.0.0", "::")
_CPU_VARIABLES = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_NUM_OF_RESERVED_CPU": "0"}
_VARIABLES = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
_MODEL = "model"
_GUIDED = [
    *("--scheduler-cls", guided_vllm.SCHEDULER, "--logits-processors", guided_vllm.PROCESSOR),
    *("--middleware", guided_vllm.MIDDLEWARE, "--no-async-scheduling"),
]
_ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def serve(
    context: typer.Context,
    model: Annotated[str, typer.Argument(help="Name, id or @production.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 8000,
    python: Annotated[
        Path | None,
        typer.Option(help="Python interpreter with vLLM. [default: STEERBOARD_VLLM_PYTHON, or `make setup-vllm`'s]"),
    ] = None,
    endpoint: Annotated[str | None, typer.Option(help="Name of the endpoint. [default: MODEL-vllm]")] = None,
    guidance: Annotated[
        bool, typer.Option("--guidance", help="Accept guidance; vLLM then does not schedule asynchronously.")
    ] = False,
    wait: Annotated[float, typer.Option(min=1.0, help="Seconds to wait for its start.")] = 900.0,
) -> None:
    """Serve a model with vLLM as an endpoint of the project, until Ctrl-C. Arguments after `--` are passed to vLLM."""
    _when_told_to_end(signal.default_int_handler)
    console = Console(stderr=True)
    interpreter = _interpreter(python)
    port = _free_port(host, port)
    client = Client()
    details = client.get(f"models/{quote(model)}")
    if details["role"] not in POLICIES:
        raise BadInput(f"{details['name']} is a {details['role']} model and answers nothing", code="wrong_role")
    if guidance and not details["info"].get("condition"):
        raise BadInput(
            f"{details['name']} takes no scores, so nothing could guide its answers",
            code="no_guidance",
            hint="Leave out --guidance, or serve a policy that takes scores.",
        )
    name = endpoint or f"{details['name']}-vllm"[:128]
    url = f"http://{_reachable(host)}:{port}/v1"
    # Loading takes minutes, and the platform may not be allowed to call this address.
    with _registered(client, details, name, url, guidance) as up, scratch.folder("serve") as folder, _log_file() as log:
        download_model(client, details, folder / _MODEL)
        # From here on there is a server to shut down cleanly; before, everything is simply interrupted.
        stopping = threading.Event()
        _when_told_to_end(lambda *_: stopping.set())
        server = Guarded(_spec(interpreter, details, folder, log, host, port, guidance, context.args))
        try:
            console.print(f"vLLM is loading {details['name']}; its log: {log}")
            if _wait_until_healthy(console, server, host, port, wait, stopping):
                up.set()
                _tell(console, client, details, name)
                typer.echo(url)
                while not stopping.wait(0.5):
                    if server.status() is not None:
                        raise server.failure()
        finally:
            console.print("Stopping ...")
            server.stop()


@contextmanager
def _log_file() -> Iterator[Path]:
    """A temporary one. When the server failed it stays, because the message names it."""
    descriptor, name = tempfile.mkstemp(prefix="steerboard-serve-", suffix=".log")
    os.close(descriptor)
    stays = False
    try:
        yield Path(name)
    except ServerFailed:
        stays = True
        raise
    finally:
        if not stays:
            os.unlink(name)


def _when_told_to_end(act: Callable[[int, FrameType | None], Any]) -> None:
    for number in _ENDS:
        signal.signal(number, act)


def _interpreter(given: Path | None) -> Path:
    if given is None:
        return require_python(get_settings())
    if not os.access(given, os.X_OK):
        raise EngineMissing(f"{given} is not a working Python interpreter", hint="Correct --python.")
    # Not resolved: an environment's Python is known by the place of its link.
    return given.absolute()


def _spec(
    python: Path,
    model: dict[str, Any],
    folder: Path,
    log: Path,
    host: str,
    port: int,
    guidance: bool,
    more: list[str],
) -> GuardedSpec:
    on_gpu = shutil.which("nvidia-smi") is not None
    command = [str(python), "-m", "vllm.entrypoints.openai.api_server", "--host", host, "--port", str(port)]
    command += _what(model, folder / _MODEL)
    command += ["--max-model-len", str(model["info"]["max_length"]), "--dtype", "auto" if on_gpu else "float32"]
    command += _GUIDED if guidance else []
    wanted = _VARIABLES | ({} if on_gpu else _CPU_VARIABLES)
    ours = guided_vllm.VARIABLES | {"PYTHONPATH": str(our_packages(folder / "ours"))} if guidance else {}
    return GuardedSpec(
        name="vLLM",
        # The caller's arguments come last, so they override ours.
        command=[*command, *more],
        log=log,
        stop=[(signal.SIGTERM, 15.0)],
        death_signal=signal.SIGTERM,
        cwd=folder,
        public=True,
        env={name: value for name, value in wanted.items() if name not in os.environ}
        # Its own settings are its own, a key among them.
        | {name: value for name, value in os.environ.items() if name.startswith("VLLM_")}
        | ours
        | {"PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"},
    )


def _what(model: dict[str, Any], folder: Path) -> list[str]:
    """A whole model, or an adapter over its base, which answers by the adapter's name and template. Raises `BadInput`
    (`engine_refused`)."""
    lora = model["info"].get("lora")
    if lora is None:
        return ["--model", str(folder), "--served-model-name", model["name"]]
    adapter = folder / "adapter_config.json"
    config = json.loads(adapter.read_bytes()) if adapter.is_file() else {}
    unread = (
        "tokens of its own" if config.get("trainable_token_indices") else "DoRA's norms" if lora.get("dora") else ""
    )
    if unread:
        raise BadInput(
            f"{model['name']} is an adapter with {unread}, which vLLM does not read",
            code="engine_refused",
            hint="Train it again with the adapter merged (lora.merge: true), and serve that.",
        )
    room = vllm_rank(int(lora["rank"]))
    return [
        *("--model", str(folder / "base"), "--tokenizer", str(folder), "--served-model-name", f"{model['name']}-base"),
        *("--enable-lora", "--max-lora-rank", str(room), "--lora-modules", f"{model['name']}={folder}"),
    ]


def _wait_until_healthy(
    console: Console, server: Guarded, host: str, port: int, seconds: float, stopping: threading.Event
) -> bool:
    """False when it was asked to stop meanwhile. Raises `ServerFailed` when it ends, or is not up in time."""
    began = time.monotonic()
    url = f"http://{_local(host)}:{port}/health"
    with console.status("") as status:
        while not stopping.wait(0.5):
            waited = time.monotonic() - began
            last = log_tail(server.spec.log, 1)[-100:]
            status.update(f"{waited:4.0f} s  {last}", spinner="dots")
            if server.status() is not None:
                raise server.failure()
            if waited > seconds:
                raise ServerFailed(
                    f"vLLM did not answer within {seconds:g} s", hint=f"{log_tail(server.spec.log)}\nSee also --wait."
                )
            try:
                if httpx.get(url, timeout=min(5.0, seconds), trust_env=False).is_success:
                    return True
            except httpx.HTTPError:
                continue
    return False


@contextmanager
def _registered(
    client: Client, model: dict[str, Any], name: str, url: str, guidance: bool
) -> Iterator[threading.Event]:
    """Make or change the endpoint. A new one goes again unless the event is set: the server is up.

    Raises `ApiError` (`address_refused`)."""
    made, up = False, threading.Event()
    body = {"base_url": url, "model": model["name"], "policy_model": model["id"], "guides": guidance}
    try:
        client.request("PATCH", f"endpoints/{quote(name)}", json=body)
    except ApiError as error:
        if error.status != 404:
            raise
        client.post("endpoints", {"name": name, **body})
        made = True
    try:
        yield up
    finally:
        if made and not up.is_set():
            client.request("DELETE", f"endpoints/{quote(name)}")


def _tell(console: Console, client: Client, model: dict[str, Any], name: str) -> None:
    """Reports that the model is served, and whether the platform reaches it."""
    checked = client.post(f"endpoints/{quote(name)}/check")
    console.print(f"{model['name']} is served as endpoint {name}", highlight=False)
    if not checked["ok"]:
        problem = checked["problem"]
        console.print(f"The platform cannot use it yet: {problem['detail']}. {problem['hint'] or ''}", style="yellow")


def _free_port(host: str, port: int) -> int:
    """Called before the weights are fetched. Raises `BadInput` (`port_taken`)."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise BadInput(
                f"{host}:{port}: {error.strerror}", code="port_taken", hint="Choose another --port; 0 takes a free one."
            ) from None
        return int(probe.getsockname()[1])


def _local(host: str) -> str:
    return "127.0.0.1" if host in _ANYWHERE else _bracketed(host)


def _reachable(host: str) -> str:
    return socket.getfqdn() if host in _ANYWHERE else _bracketed(host)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host

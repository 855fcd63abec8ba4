"""`steerboard demo`: a small model from random weights, on synthetic data; `make demo` calls it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from rich.console import Console

from steerboard.cli.client import Client
from steerboard.cli.demo.showing import Demo, ExitOption, PortOption, ReportOption, exists, import_rows, show
from steerboard.platform.storage import scratch
from steerboard_contracts.demo import DEMO_DATASETS

# Kinds of the demo's datasets, and the recipe's inputs that they are for.
_INPUTS = {"instructions": "instructions", "preferences": "preferences", "prompts": "prompts", "unpaired": "thumbs"}
_INSTRUCTIONS = "Put the most helpful answer first. Answers of equal worth share a rank. All texts are synthetic."


def demo(exit_: ExitOption = False, report: ReportOption = None, port: PortOption = None) -> None:
    """Start everything, run the demo pipeline on synthetic data, print its report, open it in the dashboard, stay up.

    The address for ranking its answers blind in the browser is printed, too.

    Exits with 0 only if every stage succeeded.
    """
    demo_ = Demo(start=_start, instructions=_INSTRUCTIONS, prompt="How do I manage my time?")
    show(demo_, exit_=exit_, report=report, port=port)


def _start(client: Client, console: Console) -> dict[str, Any]:
    _import_datasets(client, console)
    body = {"recipe": "demo", "set": [f"{_INPUTS[kind]}={name}" for kind, name in DEMO_DATASETS.items()]}
    pipeline: dict[str, Any] = client.post("pipelines", body)
    console.print(f"Started {pipeline['name']} with {len(pipeline['runs'])} stages on synthetic data.")
    return pipeline


def _import_datasets(client: Client, console: Console) -> None:
    """Write and import the demo data; what an earlier demo imported is taken as it is."""
    missing = [kind for kind, name in DEMO_DATASETS.items() if not exists(client, "datasets", name)]
    if missing:
        with scratch.folder("demo") as folder:
            # A process of its own: the backend never imports the workers' package.
            command = [sys.executable, "-m", "steerboard_workers.synthetic", str(folder)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            for kind in missing:
                (folder / f"{kind}.jsonl").rename(folder / f"synthetic-{kind}.jsonl")
                import_rows(
                    client,
                    console,
                    folder / f"synthetic-{kind}.jsonl",
                    kind,
                    DEMO_DATASETS[kind],
                    f"synthetic {kind}",
                )

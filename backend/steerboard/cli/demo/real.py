"""`steerboard demo-real`: score control and its rivals on a real pretrained model; `make demo-real` calls it.

The controlled sentiment experiment of arXiv 2305.18290, section 6.1, in a form that two CPU cores can run: prompts ask
for one sentence about a film, a hotel or a phone, and a program knows how positive an answer is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from steerboard.cli.client import Client
from steerboard.cli.demo.review_prompts import review_prompts
from steerboard.cli.demo.showing import Demo, ExitOption, PortOption, ReportOption, exists, import_rows, show
from steerboard.cli.models.importing import import_model
from steerboard.platform.storage import scratch
from steerboard_contracts.errors import SteerboardError

_PROMPTS, _BASE = "review-prompts", "smollm2-135m-instruct"
_INSTRUCTIONS = "Put the most positive answer first. Answers of equal worth share a rank."


def demo_real(
    base: Annotated[Path, typer.Argument(help="SmolLM2 135M Instruct: its .gguf file, or a folder that holds it.")],
    exit_: ExitOption = False,
    report: ReportOption = None,
    port: PortOption = None,
) -> None:
    """Start everything, steer a real pretrained model by a score, compare the methods, open the dashboard, stay up.

    Exits with 0 only if every stage succeeded.
    """

    def start(client: Client, console: Console) -> dict[str, Any]:
        return _start(client, console, base)

    prompt = "Write a one-sentence customer review of a tent."
    show(Demo(start=start, instructions=_INSTRUCTIONS, prompt=prompt), exit_=exit_, report=report, port=port)


def _start(client: Client, console: Console, base: Path) -> dict[str, Any]:
    if not exists(client, "models", _BASE):
        run = import_model(client, str(base.absolute()), _BASE)
        if run["state"] != "succeeded":
            raise SteerboardError(f"the base model was not imported: {run['reason']}")
        console.print(f"Imported the base model as {_BASE}")
    if not exists(client, "datasets", _PROMPTS):
        with scratch.folder("demo-real") as folder:
            file = folder / f"{_PROMPTS}.jsonl"
            rows = (json.dumps({"prompt": prompt}) for prompt in review_prompts())
            file.write_text("\n".join(rows) + "\n", encoding="utf-8")
            import_rows(client, console, file, "prompts", _PROMPTS, "prompts that ask for a review")
    body = {"recipe": "demo-real", "set": [f"base={_BASE}", f"prompts={_PROMPTS}"]}
    pipeline: dict[str, Any] = client.post("pipelines", body)
    console.print(f"Started {pipeline['name']} with {len(pipeline['runs'])} stages on a real pretrained model.")
    return pipeline

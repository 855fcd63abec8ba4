"""Every command, argument and option has a description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from steerboard.cli.main import app


def commands(command: Any, path: str = "steerboard") -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{path} {name}")


def test_nothing_is_without_help() -> None:
    silent = []
    for path, command in commands(typer.main.get_command(app)):
        silent += [] if command.help else [path]
        silent += [f"{path}: {parameter.name}" for parameter in command.params if not getattr(parameter, "help", None)]
    assert silent == []


def test_every_command_that_ends_can_answer_in_json() -> None:
    """The others run until they are stopped."""
    servers = {f"steerboard {name}" for name in ("up", "worker", "api", "demo", "demo-real", "mcp", "models serve")}
    answers_json = {
        path: any("--json" in parameter.opts for parameter in command.params)
        for path, command in commands(typer.main.get_command(app))
        if not getattr(command, "commands", {})
    }
    assert {path for path, has in answers_json.items() if not has} == servers

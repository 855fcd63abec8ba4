"""`steerboard`: every command. Errors are one readable message and an exit code, never a traceback.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage (64 for `gate` and `evaluations`), 69 no server answers, 130
interrupted.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys

import typer

from steerboard.cli.client import ServerUnreachable, print_error
from steerboard_contracts.errors import SteerboardError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False, help=__doc__)

# A module's `app` becomes the group of its name, the commands of its `commands` stand at the top.
_MODULES = (
    "services",
    "servers",
    "demo",
    "recipes",
    "generate",
    "pipelines",
    "runs",
    "datasets",
    "models",
    "evaluations",
    "figures",
    "gate",
    "tokens",
    "keeping",
    "secrets",
)


def _include() -> None:
    for name in _MODULES:
        if importlib.util.find_spec(f"steerboard.cli.{name}") is None:
            continue
        module = importlib.import_module(f"steerboard.cli.{name}")
        if isinstance(commands := getattr(module, "commands", None), typer.Typer):
            app.add_typer(commands)
        if isinstance(group := getattr(module, "app", None), typer.Typer):
            app.add_typer(group, name=name)


_include()


def main() -> None:
    logging.basicConfig(
        level=os.environ.get("STEERBOARD_LOG_LEVEL", "WARNING"), format="%(levelname)s %(name)s: %(message)s"
    )
    try:
        app()
    except SteerboardError as error:
        print_error(error)
        sys.exit(69 if isinstance(error, ServerUnreachable) else 1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

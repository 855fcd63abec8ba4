"""Wrong usage with the exit code 64 of sysexits.h, where 2 means something else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from typer.core import TyperCommand, TyperGroup

from steerboard.cli.client import ApiError, ServerUnreachable, print_error
from steerboard.cli.output.console import EXIT_UNREACHABLE
from steerboard_contracts.errors import SteerboardError

EXIT_USAGE = 64


@contextmanager
def _as_usage() -> Iterator[None]:
    """Errors of the command line itself carry the exit code with which they end the process, 2 by default."""
    try:
        yield
    except Exception as error:
        if getattr(error, "exit_code", None) == 2:
            error.exit_code = EXIT_USAGE  # type: ignore[attr-defined]
        raise


class ExactCommand(TyperCommand):
    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _as_usage():
            return super().make_context(*arguments, **options)


class GatedCommand(TyperCommand):
    """Exact where the command line names a gate, since 2 means something else there only."""

    def make_context(self, info_name: Any, args: list[str], *arguments: Any, **options: Any) -> Any:
        if not any(argument.partition("=")[0] == "--gate" for argument in args):
            return super().make_context(info_name, args, *arguments, **options)
        with _as_usage():
            return super().make_context(info_name, args, *arguments, **options)


class ExactGroup(TyperGroup):
    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _as_usage():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        with _as_usage():
            return super().invoke(ctx)


def exit_code_of(error: SteerboardError) -> int:
    """Prints the error. 69: the server cannot answer now; 64: what was asked cannot be answered by any."""
    print_error(error)
    busy = isinstance(error, ApiError) and (error.status >= 500 or error.status == 429)
    return EXIT_UNREACHABLE if busy or isinstance(error, ServerUnreachable) else EXIT_USAGE

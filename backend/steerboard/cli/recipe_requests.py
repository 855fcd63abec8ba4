"""Recipes as the commands send them: by name or text, with folders of this machine, and every fault on a line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

from steerboard.cli.client import ApiError, Client
from steerboard.cli.models.uploads import folder_here, upload_model
from steerboard.cli.output.console import EXIT_INVALID
from steerboard_contracts.files.local_folders import FolderNotAllowed


def post_recipe(
    client: Client, path: str, recipe: str, overrides: list[str], more: dict[str, Any], invalid: int = EXIT_INVALID
) -> Any:
    """Send a recipe by name or text. Folders that the server may not read go there first.

    Ends with status `invalid` and every fault when it is."""
    body = {**recipe_body(recipe, invalid), "set": [absolute(override) for override in overrides], **more}
    try:
        try:
            return client.post(path, body)
        except ApiError as error:
            if error.code != FolderNotAllowed.code:
                raise
            taken = [uploaded(client, override) for override in body["set"]]
            if taken == body["set"]:
                raise
            return client.post(path, {**body, "set": taken})
    except ApiError as error:
        if error.status in (404, 422):
            print_recipe_error(recipe, error)
            raise typer.Exit(invalid) from None
        raise


def print_recipe_error(recipe: str, error: ApiError) -> None:
    """Every fault on a line of its own, with the file in front, as compilers do."""
    print(f"error: {recipe}: {error.detail} [{error.code}]", file=sys.stderr)
    for place in error.errors:
        print(f"  {place.location}: {place.message}", file=sys.stderr)
    if error.hint:
        print(error.hint, file=sys.stderr)


def recipe_body(recipe: str, invalid: int = EXIT_INVALID) -> dict[str, str]:
    """A file's text, or the name of a shipped recipe."""
    path = Path(recipe)
    if path.is_file():
        try:
            return {"text": path.read_text()}
        except (OSError, UnicodeDecodeError) as error:
            print(f"error: {recipe} cannot be read: {error}", file=sys.stderr)
            raise typer.Exit(invalid) from None
    if path.suffix in (".yaml", ".yml") or len(path.parts) != 1:
        print(f"error: there is no file {recipe}", file=sys.stderr)
        raise typer.Exit(invalid)
    return {"recipe": recipe}


def absolute(override: str) -> str:
    """`--set base=./model` means a folder here, wherever the server runs."""
    folder = _folder_here(override)
    return override if folder is None else f"{override.partition('=')[0]}={folder}"


def uploaded(client: Client, override: str) -> str:
    """The same with the server's own name for the folder, which is brought there."""
    folder = _folder_here(override)
    return override if folder is None else f"{override.partition('=')[0]}={upload_model(client, folder)}"


def _folder_here(override: str) -> Path | None:
    name, equals, value = override.partition("=")
    return folder_here(value) if equals and "." not in name else None

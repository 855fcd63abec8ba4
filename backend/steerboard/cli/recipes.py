"""`steerboard recipes` and `steerboard run`: check recipes, start them, follow them to their report."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from steerboard.cli.client import ApiError, Client
from steerboard.cli.finishing import finish
from steerboard.cli.output import EXIT_INVALID, JsonOption, print_json

app = typer.Typer(help="Check recipes and see what ships.", no_args_is_help=True)
commands = typer.Typer()

RecipeArgument = Annotated[str, typer.Argument(help="A YAML file, or the name of a recipe that ships.")]
SetOption = Annotated[
    list[str], typer.Option("--set", metavar="NAME=VALUE", help="Give an input or change any field; may be repeated.")
]


@app.command("list")
def list_recipes(json: JsonOption = False) -> None:
    """The recipes that ship with Steerboard."""
    recipes = Client().get("recipes")
    if json:
        print_json([{"name": r["name"], "description": r["description"]} for r in recipes])
        return
    for recipe in recipes:
        print(f"{recipe['name']:<20} {recipe['description']}")


@app.command()
def show(name: str) -> None:
    """Print a shipped recipe."""
    print(Client().get(f"recipes/{name}")["text"], end="")


@app.command()
def check(recipe: RecipeArgument, set_: SetOption = [], json: JsonOption = False) -> None:  # noqa: B006
    """Show what a recipe would do: every stage with its inputs and settings. Starts nothing."""
    plan = post_recipe(Client(), "recipes/check", recipe, set_, {})
    if json:
        print_json(plan)
        return
    console = Console()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("stage", "does", "from", "settings"):
        table.add_column(heading, overflow="fold")
    for stage in plan["stages"]:
        name = f"{stage['name']} *" if stage["implied"] else stage["name"]
        table.add_row(
            name, stage["method"] or stage["kind"], _inputs_text(stage["inputs"]), _settings_text(stage["config"])
        )
    console.print(table, markup=False)
    if any(stage["implied"] for stage in plan["stages"]):
        console.print("* implied by the recipe")
    for note in plan["notes"]:
        console.print(f"note: {note}", markup=False)


def _inputs_text(inputs: dict[str, Any]) -> str:
    return ", ".join(dict.fromkeys(one["name"] for one in inputs.values()))


def _settings_text(config: dict[str, Any]) -> str:
    """What people look at first; `--json` has it all."""
    shown = ("lr", "batch", "epochs", "half", "threshold", "beta", "score_scale", "size", "source", "prompts", "shards")
    found = [(name, config[name]) for name in shown if config.get(name) not in (None, [])]
    found = [(name, value) for name, value in found if (name, value) != ("shards", 1)]
    decoding = config.get("decoding")
    if decoding:
        found.append(("temperature", decoding["temperature"]))
    return ", ".join(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in found)


@commands.command()
def run(
    recipe: RecipeArgument,
    set_: SetOption = [],  # noqa: B006
    wait: Annotated[bool, typer.Option("--wait", help="Follow the pipeline and print its report at the end.")] = False,
    json: JsonOption = False,
    report: Annotated[Path | None, typer.Option(help="Also write the report to this file, as JSON.")] = None,
    reuse: Annotated[bool, typer.Option(help="Take over finished stages that are equal.")] = True,
    examples: Annotated[
        bool | None, typer.Option(help="Show example answers; by default only those of synthetic data.")
    ] = None,
) -> None:
    """Start a recipe. With --wait: exit 0 only if every stage succeeded, 1 if one failed, 2 for an invalid recipe."""
    client = Client()
    pipeline = post_recipe(client, "pipelines", recipe, set_, {"reuse": reuse})
    if not (wait or report):
        if json:
            print_json(pipeline)
        else:
            print(f"Started {pipeline['name']} with {len(pipeline['runs'])} stages.")
            print(f"Follow it: steerboard pipelines show {pipeline['name']}")
        return
    # Standard output stays clean for the JSON document.
    console = Console(stderr=json)
    console.print(f"Started {pipeline['name']} with {len(pipeline['runs'])} stages.", markup=False)
    finish(client, console, pipeline, json=json, report_path=report, examples=examples)


def post_recipe(client: Client, path: str, recipe: str, overrides: list[str], more: dict[str, Any]) -> Any:
    """Send a recipe by name or text. Ends with status 2 and every fault when it is invalid."""
    body = {**recipe_body(recipe), "set": [absolute(one) for one in overrides], **more}
    try:
        return client.post(path, body)
    except ApiError as error:
        if error.status in (404, 422):
            print_recipe_error(recipe, error)
            raise typer.Exit(EXIT_INVALID) from None
        raise


def print_recipe_error(recipe: str, error: ApiError) -> None:
    """Every fault on a line of its own, with the file in front, as compilers do."""
    print(f"error: {recipe}: {error.detail} [{error.code}]", file=sys.stderr)
    for place in error.errors:
        print(f"  {place.location}: {place.message}", file=sys.stderr)
    if error.hint:
        print(error.hint, file=sys.stderr)


def recipe_body(recipe: str) -> dict[str, str]:
    """A file's text, or the name of a shipped recipe."""
    path = Path(recipe)
    if path.is_file():
        try:
            return {"text": path.read_text()}
        except (OSError, UnicodeDecodeError) as error:
            print(f"error: {recipe} cannot be read: {error}", file=sys.stderr)
            raise typer.Exit(EXIT_INVALID) from None
    if path.suffix in (".yaml", ".yml") or len(path.parts) != 1:
        print(f"error: there is no file {recipe}", file=sys.stderr)
        raise typer.Exit(EXIT_INVALID)
    return {"recipe": recipe}


def absolute(override: str) -> str:
    """`--set base=./model` means a folder here, wherever the server runs."""
    name, equals, value = override.partition("=")
    looks_like_a_path = os.sep in value or value.startswith("~")
    if equals and "." not in name and looks_like_a_path and Path(value).expanduser().is_dir():
        return f"{name}={Path(value).expanduser().absolute()}"
    return override

"""`steerboard recipes` and `steerboard run`: check recipes, start them, follow them to their report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from pydantic import ValidationError
from rich.console import Console

from steerboard.cli.client import Client, path_of
from steerboard.cli.evaluation.gate import EXITS, JunitOption, hold, read_rules
from steerboard.cli.output.console import EXIT_FAILED, EXIT_INVALID, JsonOption, console, note, print_json, tell
from steerboard.cli.output.listing import Column, plain, print_table
from steerboard.cli.output.pipeline_result import finish
from steerboard.cli.output.run_rows import print_stage_warnings
from steerboard.cli.recipe_requests import post_recipe
from steerboard.cli.row_checks import CheckOption, check_rows_of_stages
from steerboard.cli.usage import EXIT_USAGE, GatedCommand, exit_code_of
from steerboard.evaluation.gate.rules import GateRules, check_reward_models, not_planned, parse_rules
from steerboard_contracts.complaints import locations
from steerboard_contracts.errors import BadInput, SteerboardError
from steerboard_contracts.run_kinds.evaluate import Entrant

app = typer.Typer(help="List, show and check recipes.", no_args_is_help=True)
commands = typer.Typer()

_EXAMPLE = "docs/ci.md has an example."

_COLUMNS = (Column("recipe"), Column("what it does", words=True, wrap=True, drop=1))
_STAGE_COLUMNS = (
    Column("stage"),
    Column("does", drop=4),
    Column("from", drop=2, words=True),
    Column("", drop=3),
    Column("settings", drop=1, words=True, wrap=True),
)

RecipeArgument = Annotated[str, typer.Argument(help="A YAML file, or the name of a shipped recipe.")]
SetOption = Annotated[
    list[str], typer.Option("--set", metavar="NAME=VALUE", help="Set an input or any field; may be repeated.")
]
FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="STAGE",
        help="Run this stage and those after it; their other inputs come from identical finished stages.",
    ),
]


@app.command("list")
def list_recipes(json: JsonOption = False) -> None:
    """List the recipes that ship with Steerboard."""
    recipes = Client().get("recipes")
    if json:
        print_json([{"name": r["name"], "description": r["description"]} for r in recipes])
        return
    print_table(console(), _COLUMNS, [(recipe["name"], recipe["description"]) for recipe in recipes])


@app.command()
def show(name: Annotated[str, typer.Argument(help="Name of a shipped recipe.")], json: JsonOption = False) -> None:
    """Print a shipped recipe."""
    recipe = Client().get(path_of("recipes", name))
    tell(recipe["text"].rstrip("\n"), recipe, json=json)


@app.command()
def check(
    recipe: RecipeArgument,
    set_: SetOption = [],  # noqa: B006
    from_: FromOption = None,
    json: JsonOption = False,
) -> None:
    """Show what a recipe would do: every stage with its inputs and settings. Starts nothing."""
    plan = post_recipe(Client(), "recipes/check", recipe, set_, {"from_stage": from_})
    if json:
        print_json(plan)
        return
    out = console()
    rows = [
        (
            stage["name"],
            stage["method"] or stage["kind"],
            _inputs_text(stage["inputs"]),
            "implied" if stage["implied"] else "",
            _settings_text(stage["config"]),
        )
        for stage in plan["stages"]
    ]
    print_table(out, _STAGE_COLUMNS, rows)
    for words in plan["notes"]:
        note(plain(f"note: {words}"))
    print_stage_warnings(plan["stages"])


def _inputs_text(inputs: dict[str, Any]) -> str:
    return ", ".join(dict.fromkeys(given["name"] for given in inputs.values()))


def _settings_text(config: dict[str, Any]) -> str:
    """What people look at first; `--json` has it all."""
    shown = ("lr", "batch", "epochs", "half", "threshold", "beta", "score_scale", "size", "source", "prompts", "shards")
    settings = [(name, config[name]) for name in shown if config.get(name) not in (None, [])]
    settings = [(name, value) for name, value in settings if (name, value) != ("shards", 1)]
    decoding = config.get("decoding")
    if decoding:
        settings.append(("temperature", decoding["temperature"]))
    return ", ".join(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in settings)


@commands.command(cls=GatedCommand)
def run(
    recipe: RecipeArgument,
    set_: SetOption = [],  # noqa: B006
    wait: Annotated[bool, typer.Option("--wait", help="Follow the pipeline and print its report at the end.")] = False,
    json: JsonOption = False,
    report: Annotated[Path | None, typer.Option(help="Also write the report to this file, as JSON.")] = None,
    reuse: Annotated[bool, typer.Option(help="Reuse the outputs of identical finished stages.")] = True,
    from_: FromOption = None,
    examples: Annotated[
        bool | None, typer.Option(help="Show example answers; by default only those of synthetic data.")
    ] = None,
    gate: Annotated[
        Path | None,
        typer.Option(help="Check the evaluation against these rules at the end (docs/ci.md); exits as `gate` does."),
    ] = None,
    junit: JunitOption = None,
    check: CheckOption = True,
) -> None:
    """Run a recipe. With --wait: exit 0 only if every stage succeeded, 1 if one failed, 2 for an invalid recipe. With
    --gate: 0 pass, 1 fail, 2 invalid or a stage failed, 64 wrong usage or an invalid recipe, 69 no server answers."""
    how = {"reuse": reuse, "from_stage": from_}
    if gate is not None:
        _run_gated(recipe, set_, gate, junit, json=json, report=report, how=how, examples=examples, rows=check)
    client = Client()
    pipeline = _start(client, recipe, set_, how, rows=check)
    if not (wait or report):
        if json:
            print_json(pipeline)
        else:
            _say_started(console(), pipeline)
            print(f"Follow it: steerboard pipelines show {pipeline['name']}")
        return
    # Standard output stays clean for the JSON document.
    out = console(stderr=json)
    _say_started(out, pipeline)
    finish(client, out, pipeline, json=json, report_path=report, examples=examples)


def _start(
    client: Client, recipe: str, overrides: list[str], how: dict[str, Any], *, rows: bool, invalid: int = EXIT_INVALID
) -> dict[str, Any]:
    """Start the recipe; with `rows`, after those of training stages have been checked."""
    if rows:
        which = {"from_stage": how["from_stage"]}
        check_rows_of_stages(
            client, lambda: post_recipe(client, "recipes/row-checks", recipe, overrides, which, invalid=invalid)
        )
    started: dict[str, Any] = post_recipe(client, "pipelines", recipe, overrides, how, invalid=invalid)
    return started


def _say_started(out: Console, pipeline: dict[str, Any]) -> None:
    out.print(f"Started {pipeline['name']} with {len(pipeline['runs'])} stages.")
    print_stage_warnings(pipeline["runs"], out)


def _run_gated(
    recipe: str,
    overrides: list[str],
    gate: Path,
    junit: Path | None,
    *,
    json: bool,
    report: Path | None,
    how: dict[str, Any],
    examples: bool | None,
    rows: bool,
) -> NoReturn:
    """Pipeline, evaluation and gate. With `json` the verdict is what standard output gets."""
    out = console(stderr=json)
    try:
        rules = read_rules(gate, junit)
        given = _valid(rules)
        client = Client()
        check = post_recipe(client, "recipes/check", recipe, overrides, {}, invalid=EXIT_USAGE)
        # Hours of training are too late to hear of a misspelled entrant.
        stage = _evaluation(check)
        parsed = parse_rules(given, _entrants(stage))
        check_reward_models(parsed, _reward_models(stage))
        for words in not_planned(parsed):
            note(plain(f"note: {words}"))
        pipeline = _start(client, recipe, overrides, how, rows=rows, invalid=EXIT_USAGE)
        _say_started(out, pipeline)
        try:
            finished_report = finish(client, out, pipeline, json=False, report_path=report, examples=examples)
        except typer.Exit as ended:
            if ended.exit_code != EXIT_FAILED:
                raise
            print(f"{pipeline['name']}: invalid, because the gate needs a finished pipeline", file=sys.stderr)
            raise typer.Exit(EXITS["invalid"]) from None
        if finished_report.evaluation is None:
            raise BadInput(f"the report of {pipeline['name']} does not belong to an evaluation", code="no_evaluation")
        hold(client, str(finished_report.evaluation.id), rules, junit, json=json)
    except SteerboardError as error:
        raise typer.Exit(exit_code_of(error)) from None


def _valid(rules: Any) -> GateRules:
    """Raises `BadInput` with the places of what is not a gate."""
    try:
        return GateRules.model_validate(rules)
    except ValidationError as error:
        faults = locations(error.errors())
        raise BadInput(
            "the rules of the gate cannot be used", errors=faults, hint="docs/ci.md has an example."
        ) from None


def _evaluation(plan: dict[str, Any]) -> dict[str, Any]:
    """The stage whose report is a pipeline's. Raises `BadInput` (`no_evaluation`)."""
    stage = next((planned for planned in reversed(plan["stages"]) if planned["kind"] == "evaluate"), None)
    if stage is None:
        hint = "Give it a stage `run: evaluate`."
        raise BadInput(f"the recipe {plan['name']} has no evaluation for a gate", code="no_evaluation", hint=hint)
    evaluation: dict[str, Any] = stage
    return evaluation


def _reward_models(stage: dict[str, Any]) -> list[str]:
    """The reward models as its report calls them: after the stages that train them."""
    return [given["name"] for slot, given in stage["inputs"].items() if slot.partition(".")[0] == "rewards"]


def _entrants(stage: dict[str, Any]) -> list[str]:
    # Imported here, so that no other command waits for the database's library.
    from steerboard.evaluation.recipe_stage.names import entrant_names

    given = stage["config"]["entrants"]
    names = [stage["inputs"][f"entrants.{place}"]["name"] for place in range(len(given))]
    entrants = [(name, Entrant.model_validate(entrant)) for name, entrant in zip(names, given, strict=True)]
    return [name for rows in entrant_names(entrants) for name, _ in rows]

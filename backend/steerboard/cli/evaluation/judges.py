"""`steerboard evaluations`: a judge's budget, its calibration, and juries."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from steerboard.cli.client import Client, path_of
from steerboard.cli.evaluation.files import Name
from steerboard.cli.output.console import JsonOption, print_json, tell

app = typer.Typer()
Out = dict[str, Any]
JudgeName = Annotated[str, typer.Argument(help="Name, as printed by `show`, or id.")]


@app.command("change-judge")
def change_judge(
    evaluation: Name,
    judge: JudgeName,
    budget: Annotated[float | None, typer.Option(help="New budget, in the currency of the judge's prices.")] = None,
    no_budget: Annotated[bool, typer.Option("--no-budget", help="Remove the budget.")] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Judge the remaining items afterwards.")] = False,
    json: JsonOption = False,
) -> None:
    """Change a judge's budget."""
    if (budget is None) != no_budget:
        raise typer.BadParameter("give either --budget or --no-budget")
    client, path = Client(), path_of("evaluations", evaluation, "judges", judge)
    changed: Out = client.request("PATCH", path, json={"budget": budget}).json()
    if retry:
        changed = client.post(f"{path}/retry")
    if json:
        print_json(changed)
    else:
        print(f"{changed['name']}: {'no budget' if budget is None else f'a budget of {budget:g}'}")


@app.command()
def calibrate(
    evaluation: Name,
    judge: JudgeName,
    dataset: Annotated[str, typer.Option(help="Preference dataset whose chosen side is known to be better.")],
    limit: Annotated[int, typer.Option(min=1, help="Number of pairs to draw with the seed.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw.")] = 0,
    json: JsonOption = False,
) -> None:
    """Ask a judge about pairs whose better side is known. The report shows the share that it gets right."""
    body = {"dataset": dataset, "limit": limit, "seed": seed}
    made: Out = Client().post(path_of("evaluations", evaluation, "judges", judge, "calibrations"), body)
    if json:
        print_json(made)
    else:
        print(f"{made['judge']['name']} judges the pairs of {made['evaluation']}")


@app.command()
def jury(
    evaluation: Name,
    name: Annotated[str, typer.Argument(help="Name of the jury.")],
    judge: Annotated[list[str], typer.Option(help="A judge of the evaluation; give at least two.")],
    rule: Annotated[
        str, typer.Option(help="majority of the verdicts on each pair, or mean of standardised scores.")
    ] = "majority",
    json: JsonOption = False,
) -> None:
    """Combine several judges into one source of the report."""
    body = {"name": name, "judges": judge, "rule": rule}
    made: Out = Client().post(path_of("evaluations", evaluation, "juries"), body)
    if json:
        print_json(made)
    else:
        print(f"{made['name']}: {made['rule']} of {', '.join(made['judges'])}")


@app.command("delete-jury")
def delete_jury(
    evaluation: Name, name: Annotated[str, typer.Argument(help="Name or id of the jury.")], json: JsonOption = False
) -> None:
    """Delete a jury. Its judges and their verdicts are kept."""
    Client().delete(path_of("evaluations", evaluation, "juries", name))
    tell(f"Deleted jury {name} of {evaluation}", {"deleted": name}, json=json)

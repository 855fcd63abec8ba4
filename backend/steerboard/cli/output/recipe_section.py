"""What a recipe's stage adds to the report of its evaluation, on a terminal: control, claims, examples, caveats."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from steerboard.cli.output.console import condition_label
from steerboard.cli.output.listing import Column, print_table
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.report.sections.recipe import Control, Example, RecipeSection, RewardModelSummary

EXAMPLE_SCORES = (5.0, 0.0, -5.0)
EXAMPLE_CHARACTERS = 400


def print_recipe(console: Console, recipe: RecipeSection, examples: bool | None = None) -> None:
    """`examples`: show answers; by default only those of synthetic data, since real preference data holds texts that
    not everyone wants on their screen."""
    if recipe.reward_model.name is not None:
        console.print(Text(f"{_units(recipe)} {_reward_model(recipe.reward_model)}"), soft_wrap=not console.is_terminal)
    if recipe.control is not None and recipe.control.requested:
        _print_control(console, recipe.control)
    for check in recipe.checks:
        console.print(Text.assemble(("met      ", "green") if check.met else ("not met  ", "red"), check.text))
    for line in recipe.training:
        console.print(Text(line))
    if recipe.examples and (recipe.synthetic if examples is None else examples):
        console.print(_example(recipe, console))
    for warning in recipe.warnings:
        console.print(Text(f"Warning: {warning}", style="yellow"))


def _units(recipe: RecipeSection) -> str:
    units = f"in z units of {recipe.units_of}" if recipe.units == "z" else "raw"
    return f"Rewards of {recipe.reward_model.name} are {units}."


def _reward_model(model: RewardModelSummary) -> str:
    if model.held_out_accuracy is None:
        return "It has no held-out pairs to be checked on."
    words = f"It is right on {100 * model.held_out_accuracy:.1f}% of {model.pairs} held-out pairs"
    if model.independent_held_out_accuracy is not None:
        other = (
            "the independent one"
            if model.independent_name is None
            else f"{model.independent_name}, the independent one,"
        )
        words += f"; {other} on {100 * model.independent_held_out_accuracy:.1f}% of {model.independent_pairs or 0}"
    return words + "."


def _print_control(console: Console, control: Control) -> None:
    console.print()
    columns = (Column("requested score", right=True), Column("achieved reward", right=True))
    pairs = zip(control.requested, control.achieved, strict=True)
    rows = [(f"{target:.1f}", f"{achieved:.2f}") for target, achieved in pairs]
    print_table(console, columns, rows, heading=True)
    if control.spearman is not None:
        console.print(f"Spearman of requested and achieved: {control.spearman:.2f}")


def _example(recipe: RecipeSection, console: Console) -> RenderableType:
    """The answers of one model at 5.0, 0 and -5.0 to the first prompt; of a report without such a model all answers."""
    example = recipe.examples[0]
    model, answers = _three_scores(example)
    if model is not None:
        title = f"One prompt, {model}, three scores"
        labels = [condition_label(answer["score"]) for answer in answers]
    else:
        title = f"One prompt, {len(answers)} answer{'s' * (len(answers) != 1)}"
        labels = [_whose(answer) for answer in answers]
    body = Text()
    for label, answer in zip(labels, answers, strict=True):
        text = " ".join(str(answer.get("text", "")).split())
        cut = text if len(text) <= EXAMPLE_CHARACTERS else text[: EXAMPLE_CHARACTERS - 3] + "..."
        body.append(f"\n{label}\n", style="bold").append(cut or "(nothing)").append("\n")
    words = " (synthetic)" if recipe.synthetic else ""
    prompt = Text(f"{example.prompt}{words}", style="italic")
    if not console.is_terminal:
        return Text.assemble(title, "\n", prompt, body)
    return Panel(Group(prompt, body), title=Text(title), width=min(console.width, 110))


def _three_scores(example: Example) -> tuple[str | None, list[dict[str, Any]]]:
    """The first model that answered at each of `EXAMPLE_SCORES`, with these answers; otherwise None and all answers."""
    by_model: dict[tuple[str, Any], dict[Any, dict[str, Any]]] = defaultdict(dict)
    for answer in example.answers:
        by_model[str(answer.get("entrant")), answer.get("best_of")].setdefault(answer.get("score"), answer)
    for (model, _), answers in by_model.items():
        if all(score in answers for score in EXAMPLE_SCORES):
            return model, [answers[score] for score in EXAMPLE_SCORES]
    return None, example.answers


def _whose(answer: dict[str, Any]) -> str:
    """The entrant; in reports of earlier versions, which did not keep it, the model and the score."""
    if answer.get("name"):
        return str(answer["name"])
    score = answer.get("score")
    name = str(answer.get("entrant", "answer"))
    return name if score in (None, "") else f"{name} at {Condition.model_validate(score):.1f}"

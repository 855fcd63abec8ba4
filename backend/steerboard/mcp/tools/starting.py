"""`check_run`, `check_recipe`, `start_run`, `start_recipe` and `evaluate`: every start is checked first."""

from __future__ import annotations

from typing import Annotated, Any

from mcp_types import CallToolResult
from pydantic import Field

from steerboard.mcp.answers import answer, picked
from steerboard.mcp.boards import Ctx, board_of
from steerboard.mcp.refusals import Refused
from steerboard.mcp.tools.checks import recipe_body, recipe_check, refuse_problems, run_check, work_of
from steerboard.mcp.tools.shapes import run_line
from steerboard.mcp.untrusted import Marks
from steerboard_client.schemas import PipelineDetail, RunDetail

Kind = Annotated[str, Field(description="A kind, such as a training method; `list` has them.", max_length=80)]
Inputs = Annotated[
    dict[str, str],
    Field(description="Models and datasets by slot, such as {'model': 'base', 'data': 'pairs'}.", max_length=100),
]
Settings = Annotated[
    dict[str, Any], Field(description="Fields of the kind's settings; `inspect` the kind for them.", max_length=200)
]
Pool = Annotated[str, Field(max_length=64)]
Accept = Annotated[list[str], Field(description="Codes of problems of the check that the user accepts.", max_length=20)]
Budget = Annotated[float | None, Field(gt=0, description="Refuse to start what may cost more, or is unknown.")]
Recipe = Annotated[str | None, Field(description="Name of a recipe that ships; or give `text`.", max_length=64)]
Text = Annotated[str | None, Field(description="A recipe of your own, in YAML.", max_length=200_000)]
RecipeSettings = Annotated[
    dict[str, Any],
    Field(description="Inputs, and fields of stages: {'instructions': 'faq', 'sft.lr': 1e-5}.", max_length=200),
]
FromStage = Annotated[
    str | None, Field(description="Run this stage and those after it; the rest is taken from finished runs.")
]


async def check_run(
    ctx: Ctx,
    kind: Kind,
    inputs: Inputs = {},  # noqa: B006
    settings: Settings = {},  # noqa: B006
    pool: Pool = "default",
) -> CallToolResult:
    """What a run would cost and warn of, and what speaks against it. Starts nothing."""
    async with board_of(ctx) as board:
        return _checked(await run_check(board, await work_of(board, kind, inputs, settings), pool))


async def check_recipe(
    ctx: Ctx,
    recipe: Recipe = None,
    text: Text = None,
    settings: RecipeSettings = {},  # noqa: B006
    from_stage: FromStage = None,
) -> CallToolResult:
    """What a recipe would do and cost, stage by stage, and what it warns of. Starts nothing."""
    async with board_of(ctx) as board:
        return _checked(await recipe_check(board, _body(recipe, text, settings, from_stage)))


async def start_run(
    ctx: Ctx,
    kind: Kind,
    inputs: Inputs = {},  # noqa: B006
    settings: Settings = {},  # noqa: B006
    name: Annotated[str | None, Field(max_length=128)] = None,
    pool: Pool = "default",
    accept: Accept = [],  # noqa: B006
    max_device_hours: Budget = None,
) -> CallToolResult:
    """Check a run and start it. Refused with the check where that found a problem that is not accepted."""
    async with board_of(ctx) as board:
        work = await work_of(board, kind, inputs, settings)
        check = await run_check(board, work, pool)
        refuse_problems(check, accept, max_device_hours)
        made = await board.connection.post("runs", {**work, "name": name, "pool": pool})
        run = RunDetail.model_validate(made)
        started = {**run_line(made), "url": f"{board.connection.url}/p/{board.connection.project}/runs/{run.id}"}
    return _checked(check, started=started)


async def start_recipe(
    ctx: Ctx,
    recipe: Recipe = None,
    text: Text = None,
    settings: RecipeSettings = {},  # noqa: B006
    from_stage: FromStage = None,
    reuse: Annotated[bool, Field(description="Take what equal finished stages made.")] = True,
    accept: Accept = [],  # noqa: B006
    max_device_hours: Budget = None,
) -> CallToolResult:
    """Check a recipe and start it. Refused with the check where that found a problem that is not accepted."""
    async with board_of(ctx) as board:
        body = _body(recipe, text, settings, from_stage)
        check = await recipe_check(board, body)
        refuse_problems(check, accept, max_device_hours)
        made = PipelineDetail.model_validate(await board.connection.post("pipelines", {**body, "reuse": reuse}))
        url = f"{board.connection.url}/p/{board.connection.project}/pipelines/{made.name}"
    started = {"name": made.name, "state": made.state, "runs": [run.name for run in made.runs], "url": url}
    return _checked(check, started=started)


async def evaluate(
    ctx: Ctx,
    name: Annotated[str, Field(max_length=128)],
    prompts: Annotated[
        str | dict[str, Any], Field(description="A dataset, whose held-out rows are asked, or {'set': NAME}.")
    ],
    entrants: Annotated[
        list[str | dict[str, Any]],
        Field(description="Models, or {'model': NAME, 'score': 5.0, 'name': ...}.", min_length=1, max_length=64),
    ],
    rewards: Annotated[list[str], Field(description="Reward models that score the answers.", max_length=16)] = [],  # noqa: B006
    pool: Pool = "default",
) -> CallToolResult:
    """Begin an evaluation: the entrants answer the prompts, and reward models score them. `read_report` has the
    outcome."""
    async with board_of(ctx) as board:
        made = await board.evaluate(name, prompts=prompts, entrants=entrants, rewards=rewards, pool=pool)
    shown = made.info.model_dump(mode="json")
    started = picked(shown, ("name", "id", "state", "prompts", "unfinished")) | {"url": made.url}
    return answer({"started": started | {"entrants": [entrant["name"] for entrant in shown["entrants"]]}})


def _body(recipe: str | None, text: str | None, settings: dict[str, Any], from_stage: str | None) -> dict[str, Any]:
    if (recipe is None) == (text is None):
        raise Refused("A recipe is named, or given as text.", code="bad_arguments", hint="Give `recipe` or `text`.")
    return recipe_body(recipe, text, settings, from_stage)


def _checked(check: dict[str, Any], **more: Any) -> CallToolResult:
    """A check may quote rows and names."""
    marks = Marks()
    shown = marks.within(check, frozenset({"refusal", "reason"}))
    return answer({"ok": not check["problems"], **more, "check": shown}, marks)

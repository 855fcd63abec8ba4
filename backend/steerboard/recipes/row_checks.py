"""Rows of a recipe's training stages, tokenised before a launch: each stage whose rows and tokenizer are known by then
gets the check of a single run.

Training keeps a model's tokenizer and chat template. So the model that earlier stages begin with stands in for the one
that they will have made.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.recipes.errors import InvalidRecipe
from steerboard.recipes.inputs import StageRef
from steerboard.recipes.planning.plan import Plan, PlannedStage
from steerboard.recipes.schemas import StagesRowCheck
from steerboard.recipes.sources import Source
from steerboard.runs.launch.lookup import KnownDataset, KnownModel
from steerboard.runs.schemas.runs import RowCheck
from steerboard.runs.standalone.row_checks import check_of, finished_check
from steerboard.runs.state.lifecycle import InputRef
from steerboard_contracts.errors import ErrorLocation
from steerboard_contracts.methods import needed_method
from steerboard_contracts.run_kinds import described
from steerboard_contracts.run_kinds.check_rows import row_check_of
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.wording import listed

# Different checks of one recipe.
MOST = 20
# What a stage takes over from the model that it starts from, unless it is set.
_KEPT = ("template", "max_length")
# By kind of run, what it does to the rows that it makes.
_VERBS = {"generate": "sampled", "score": "scored", "grade": "scored", "combine": "scored", "mix": "mixed"}


@dataclass
class _Checkable:
    """Stages whose rows get the same tokens. `config` is that of the first of them, from the model in `refs`."""

    config: TrainingConfig
    refs: dict[str, InputRef]
    pool: str
    stages: list[str]


def check_stages(
    session: Session, project: Project, planned: Plan, actor: str, running: Collection[str] | None = None
) -> list[StagesRowCheck]:
    """Starts what has not been checked yet. With `running`, of these stages alone."""
    checkable, reasons = _sorted(planned, running)
    checks = []
    for place, candidate in enumerate(checkable):
        if place < MOST:
            check = check_of(session, project, candidate.config, candidate.refs, candidate.pool, actor)
            checks.append(StagesRowCheck(stages=candidate.stages, pool=candidate.pool, check=check))
        else:
            reasons.setdefault(f"the recipe has more than {MOST} different checks", []).extend(candidate.stages)
    checks += [StagesRowCheck(stages=stages, not_checked=reason) for reason, stages in reasons.items()]
    return checks


def refuse_failing(session: Session, planned: Plan, running: Collection[str] | None = None) -> dict[str, RowCheck]:
    """The finished checks by stage. Raises `InvalidRecipe` where one has shown that the run of a stage will fail."""
    checkable, _ = _sorted(planned, running)
    checks: dict[str, RowCheck] = {}
    faults = []
    for candidate in checkable:
        check = finished_check(session, candidate.config, candidate.refs)
        if check is None:
            continue
        checks |= dict.fromkeys(candidate.stages, check)
        if check.refusal is not None:
            first, *others = candidate.stages
            also = f". The same rows stop {listed(others)}" if others else ""
            faults.append(ErrorLocation(location=f"stages.{first}.data", message=check.refusal + also))
    if faults:
        raise InvalidRecipe(
            "rows were checked, and stages cannot learn from them", errors=faults, hint="Nothing was started."
        )
    return checks


def _sorted(planned: Plan, running: Collection[str] | None) -> tuple[list[_Checkable], dict[str, list[str]]]:
    """The checks that can be made, and the other training stages by the reason why none can."""
    stages = {stage.name: stage for stage in planned.stages}
    checkable: dict[tuple[str, ...], _Checkable] = {}
    reasons: dict[str, list[str]] = {}
    for stage in planned.stages:
        if not isinstance(stage.config, TrainingConfig) or (running is not None and stage.name not in running):
            continue
        data = stage.inputs["data"]
        model, config = _start(stage.config, stage.inputs["model"], stages)
        if isinstance(data, KnownDataset) and isinstance(model, KnownModel):
            key = (row_check_of(config).model_dump_json(), str(model.id), str(data.id))
            refs = {"model": InputRef(model=model.id), "data": InputRef(dataset=data.id)}
            checkable.setdefault(key, _Checkable(config, refs, stage.pool, [])).stages.append(stage.name)
        else:
            why = filter(None, (_unknown(source, stages, planned) for source in (data, model)))
            reasons.setdefault(listed(why), []).append(stage.name)
    return list(checkable.values()), reasons


def _start(config: TrainingConfig, source: Source, stages: Mapping[str, PlannedStage]) -> tuple[Source, TrainingConfig]:
    """The given model whose tokenizer and template the stage will use, with what stages in between set in them; or else
    the output that nothing given stands in for."""
    while isinstance(source, StageRef):
        maker = stages[source.stage]
        # A condition is written into the template.
        if (
            not isinstance(maker.config, TrainingConfig)
            or source.output
            or needed_method(maker.config.method).condition
        ):
            break
        kept = {name: getattr(config, name) or getattr(maker.config, name) for name in _KEPT}
        config, source = config.model_copy(update=kept), maker.inputs["model"]
    return source, config


def _unknown(source: Source, stages: Mapping[str, PlannedStage], planned: Plan) -> str | None:
    """Why rows or model are not known before the launch, with stages as the file calls them: rounds have one reason."""
    if not isinstance(source, StageRef):
        return None
    kind = described(stages[source.stage].config)
    name = planned.copy_of.get(source.stage, source.stage)
    if kind.run == "base":
        return f"its model is imported by `{name}`"
    if kind.run == "train":
        return f"`{name}` changes the chat template of its model"
    return f"its rows are {_VERBS.get(kind.run, 'made')} by `{name}`"

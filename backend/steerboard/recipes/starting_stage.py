"""`--from STAGE`: the stage and all after it run; what they read of other stages must have been made before.

An equal finished run has made it, of whatever pipeline: the same that reuse takes, and never one with other settings.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from steerboard.recipes.errors import InvalidRecipe
from steerboard.recipes.planning.plan import Plan, PlannedStage
from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.errors import ErrorLocation
from steerboard_contracts.wording import listed


def stages_from(planned: Plan, stage: str) -> list[str]:
    """The names of the stages that run: those called so, and all after them. Raises `InvalidRecipe`."""
    names = {entry.name for entry in planned.stages if stage in (entry.name, planned.copy_of.get(entry.name))}
    if not names:
        known = [*{entry.name for entry in planned.stages} | set(planned.copy_of.values())]
        raise _refusal([f"the recipe has no stage `{stage}`{did_you_mean(stage, known)}"], stage)
    for entry in planned.stages:  # each comes after all that it needs
        if names.intersection(entry.needs):
            names.add(entry.name)
    return [entry.name for entry in planned.stages if entry.name in names]


def read_by(stages: Sequence[PlannedStage], running: Collection[str]) -> list[PlannedStage]:
    """The running stages, and all others that they need, at first or second hand."""
    wanted = set(running)
    for stage in reversed(stages):
        if stage.name in wanted:
            wanted.update(stage.needs)
    return [stage for stage in stages if stage.name in wanted]


def check_made(stage: str, unmade: Sequence[str]) -> None:
    """`unmade`: earlier stages of which there is no finished equal run. Raises `InvalidRecipe`."""
    if unmade:
        raise _refusal([f"no finished run with the same settings, inputs and code made {listed(unmade)}"], stage)


def _refusal(messages: Sequence[str], stage: str) -> InvalidRecipe:
    return InvalidRecipe(
        f"the recipe cannot be started from {stage}",
        errors=[ErrorLocation(location=f"--from {stage}", message=message) for message in messages],
        hint="Nothing was started. Without --from, finished equal stages are reused and the others run.",
    )

"""Models that a run of its own names by folder, upload or hub name: a run imports each first, as in a recipe."""

from __future__ import annotations

from collections.abc import Callable

from steerboard.runs.schemas.requests import RunCreate
from steerboard.runs.standalone.checks import InvalidRun
from steerboard.runs.standalone.given_inputs import is_outside
from steerboard.runs.state.lifecycle import InputRef
from steerboard.runs.tables import Run
from steerboard_contracts.errors import ErrorLocation
from steerboard_contracts.run_kinds import kind_of


def brought_in(work: RunCreate, start: Callable[[RunCreate], Run]) -> dict[str, InputRef]:
    """The run that `start` made for each such input, by its name. Raises `InvalidRun` at the input's field."""
    kind = kind_of(work.config.get("run"), work.config.get("method"))
    slots = kind.slots_of(work.inputs) if kind is not None else {}
    runs: dict[str, InputRef] = {}
    refs: dict[str, InputRef] = {}
    for name, source in work.inputs.items():
        slot = slots.get(name.partition(".")[0])
        if slot is None or not is_outside(slot, source):
            continue
        config = {"run": "base", "source": source}
        try:
            if source not in runs:
                made = start(RunCreate(config=config, pool=work.pool, priority=work.priority, reuse=work.reuse))
                runs[source] = InputRef(run=made.id)
        except InvalidRun as error:
            faults = [ErrorLocation(location=f"inputs.{name}", message=fault.message) for fault in error.errors]
            raise InvalidRun(error.detail, errors=faults, hint=error.hint, code=error.code) from None
        refs[name] = runs[source]
    return refs

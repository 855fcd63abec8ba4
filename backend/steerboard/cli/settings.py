"""`--set FIELD=VALUE` of one run or judge: YAML values at dotted paths, as a recipe takes them for a stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from steerboard_contracts.errors import BadInput, ErrorLocation

_RUN = "run"


def config_of(texts: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """`given` with what each `FIELD=VALUE` sets. Raises `BadInput` (`bad_config`) with all that cannot be read."""
    # Imported here: most commands set nothing, and none of them waits for YAML.
    from steerboard.recipes.errors import Faults
    from steerboard.recipes.limits import Budget
    from steerboard.recipes.overrides import apply_to_stage, parse_overrides
    from steerboard.recipes.places import Node, Place
    from steerboard.recipes.recipe import Stage

    faults = Faults()
    stage = Stage(_RUN, Node(dict(given), Place()), ())
    for change in parse_overrides(list(texts), faults, Budget()):
        stage = apply_to_stage(stage, replace(change, path=(_RUN, *change.path)), faults)
    if faults:
        raise BadInput(
            "the settings cannot be used",
            code="bad_config",
            errors=[
                ErrorLocation(location=fault.location, message=fault.message.replace(f"stages.{_RUN}.", ""))
                for fault in faults.ordered()
            ],
            hint="Write FIELD=VALUE, or FIELD.INNER=VALUE.",
        )
    return {**stage.fields}

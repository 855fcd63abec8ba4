"""OpenAI's hyperparameters as fields of a method's config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steerboard.openai_api.errors import unsupported
from steerboard.platform.http.errors import InvalidRequest
from steerboard_contracts.errors import ErrorLocation
from steerboard_contracts.specs.method import MethodSpec

AUTO = "auto"
# `auto`: three epochs of fewer rows than this, and ten steps in an epoch where the method's own batch gives fewer.
_FEW_ROWS, _EPOCHS, _STEPS = 10_000, 3, 10

Hyperparameters = dict[str, Any]


def checked(spec: MethodSpec, given: Any, where: str) -> Hyperparameters:
    """`auto` or a number by name; `auto` for what is not given. Raises `InvalidRequest`, `UnsupportedParameter`."""
    assert spec.tuning is not None
    if given is not None and not isinstance(given, dict):
        raise _fault(where, "must be an object")
    taken = {name: AUTO if value is None else value for name, value in (given or {}).items()}
    for name, value in taken.items():
        if name not in spec.tuning.hyperparameters:
            known = ", ".join(spec.tuning.hyperparameters)
            raise unsupported(
                f"{where}.{name}", f"is not a hyperparameter of `{spec.tuning.name}` here; it takes {known}"
            )
        if value == AUTO:
            continue
        whole = name in ("n_epochs", "batch_size")
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not value > 0:
            raise _fault(f"{where}.{name}", f"must be `auto` or a {'whole ' if whole else ''}number above 0")
    return {name: taken.get(name, AUTO) for name in (*spec.tuning.hyperparameters[:3], *taken)}


def settled(spec: MethodSpec, hyperparameters: Mapping[str, Any], rows: int) -> tuple[Hyperparameters, dict[str, Any]]:
    """What `auto` comes to for so many training rows, and the fields of the config."""
    assert spec.tuning is not None
    default = {name: field.default for name, field in spec.config.model_fields.items()}
    few = _EPOCHS if rows < _FEW_ROWS and not spec.online else default["epochs"]
    autos = {
        "n_epochs": int(few),
        "batch_size": max(1, min(default["batch"], rows // _STEPS)),
        "learning_rate_multiplier": 1.0,
    }
    values = {name: autos.get(name, AUTO) if value == AUTO else value for name, value in hyperparameters.items()}
    fields = {
        "epochs": values["n_epochs"],
        "batch": values["batch_size"],
        "lr": default["lr"] * values["learning_rate_multiplier"],
    }
    given = {name: value for name, value in values.items() if value != AUTO}
    fields |= {field: given[name] for name, field in spec.tuning.fields.items() if name in given}
    for name, field in spec.tuning.factors.items():
        if name in given:
            product = default[field] * given[name]
            fields[field] = round(product) if isinstance(default[field], int) else product
    return values, fields


def _fault(where: str, what: str) -> InvalidRequest:
    return InvalidRequest(f"{where} {what}", errors=[ErrorLocation(location=where, message=what)])

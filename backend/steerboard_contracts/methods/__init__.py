"""The training methods: every module of this package, and those that other packages bring.

A module here is one method: its config and `SPEC`. A package elsewhere names its own under the entry point group
`steerboard.methods` (docs/methods.md). One that cannot be used is left out and listed in `faults`: it must not keep
the server, or a worker with other work, from starting.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import get_args

from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.errors import BadInput
from steerboard_contracts.fields import RunKind
from steerboard_contracts.specs.method import BadMethod, MethodSpec

GROUP = "steerboard.methods"
# A method's name can be used like a run kind's, as in the address of its launch form.
TAKEN = frozenset(get_args(RunKind))

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MethodFault:
    """A method that is left out. `name` is that of its entry point."""

    name: str
    package: str
    code: str
    detail: str


@dataclass(frozen=True)
class _Loaded:
    methods: Mapping[str, MethodSpec]
    faults: tuple[MethodFault, ...]


@cache
def _loaded() -> _Loaded:
    own = [importlib.import_module(f"{__name__}.{module.name}").SPEC for module in pkgutil.iter_modules(__path__)]
    return gather(own, importlib.metadata.entry_points(group=GROUP))


def gather(own: Iterable[MethodSpec], entry_points: Iterable[importlib.metadata.EntryPoint]) -> _Loaded:
    """Own methods first, so that no package takes the name of one."""
    specs = {spec.name: spec for spec in sorted(own, key=lambda spec: (spec.place, spec.name))}
    faults = []
    others: dict[str, MethodSpec] = {}
    for point in sorted(entry_points, key=lambda point: (point.name, point.value)):
        package = point.dist.name if point.dist else "unknown"
        try:
            spec = _spec_of(point)
            if spec.name in specs or spec.name in others or spec.name in TAKEN:
                taken = f"there is already a method or a run kind called {spec.name}"
                raise BadMethod(taken, code="method_name_taken", hint="Rename the method in its own package.")
        except BadMethod as fault:
            _log.warning("method %s of the package %s is left out: %s", point.name, package, fault.detail)
            faults.append(MethodFault(point.name, package, fault.code, fault.detail))
            continue
        others[spec.name] = spec
    specs.update(sorted(others.items(), key=lambda item: (item[1].place, item[0])))
    return _Loaded(MappingProxyType(specs), tuple(faults))


def _spec_of(point: importlib.metadata.EntryPoint) -> MethodSpec:
    """Raises `BadMethod`, whatever the package did."""
    try:
        spec = point.load()
    except BadMethod:
        raise
    except (Exception, SystemExit) as error:
        raise BadMethod(
            f"{point.value} cannot be imported: {type(error).__name__}: {error}", code="method_not_importable"
        ) from error
    if not isinstance(spec, MethodSpec):
        raise BadMethod(f"{point.value} is not a MethodSpec but {type(spec).__name__}")
    if spec.name != point.name:
        raise BadMethod(f"the entry point is called {point.name}, and its method {spec.name}")
    try:
        spec.config.model_json_schema()
    except Exception as error:
        raise BadMethod(f"the config of {spec.name} has no JSON Schema: {error}") from error
    if point.dist is None:
        return spec
    return replace(spec, package=point.dist.name, version=point.dist.version)


def methods() -> Mapping[str, MethodSpec]:
    """The methods by name, in the order of lists."""
    return _loaded().methods


def faults() -> tuple[MethodFault, ...]:
    """Methods of other packages that are installed and cannot be used."""
    return _loaded().faults


def method_of(name: object) -> MethodSpec | None:
    """Returns None for a method that is not installed here, as that of an old run may be."""
    return methods().get(name) if isinstance(name, str) else None


def needed_method(name: str) -> MethodSpec:
    """Raises `BadInput` (`unknown_method`)."""
    spec = method_of(name)
    if spec is None:
        known = ", ".join(methods())
        hint = f"Install the package that provides it; installed here: {known}."
        message = f"method {name} is not installed here{did_you_mean(name, methods())}"
        raise BadInput(message, code="unknown_method", hint=hint)
    return spec


def label_of(name: str | None, otherwise: str = "") -> str:
    """How reports call the method; `otherwise`, or the name itself, where it is not known."""
    spec = method_of(name)
    return spec.label if spec else (otherwise or name or "")


def learns_from_rewards(name: object) -> bool:
    spec = method_of(name)
    return spec is not None and spec.learns_from_rewards


def baseline_methods() -> tuple[str, ...]:
    """The default baseline of reports."""
    return tuple(spec.name for spec in methods().values() if spec.baseline)


def conditioned_labels() -> str:
    """Methods whose policies take a condition, for hints: `A or B`."""
    return " or ".join(spec.label for spec in methods().values() if spec.condition)

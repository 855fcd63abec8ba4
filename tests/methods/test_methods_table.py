"""The tables of methods and of policy losses in docs/training.md are made from their descriptions and configs.

Regenerate it with: python tests/methods/test_methods_table.py
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from steerboard_contracts.methods import methods, needed_method
from steerboard_contracts.online.policy_gradient import PolicyGradientConfig

PAGE = Path(__file__).resolve().parents[2] / "docs" / "training.md"
# Combinations with a name of their own, by the method whose fields make them.
VARIANTS = {
    "grpo": [("Dr. GRPO", {"scaling": "none", "reducer": "constant"})],
    "reinforce_pp": [("REINFORCE++-baseline", {"baseline": True})],
}
RATIOS = {"token": "each token", "sequence": "the answer"}
REDUCERS = {"token": "mean of tokens", "sequence": "mean of each answer", "constant": "sums of tokens"}


def table() -> str:
    lines = ["| `method` | | | Data | Makes | Source |", "| --- | --- | --- | --- | --- | --- |"]
    for spec in methods().values():
        if spec.package is None:
            what = f"| `{spec.name}` | {spec.title} | {spec.about}"
            lines.append(f"{what} | {', '.join(spec.data)} | {', '.join(spec.outputs)} | {spec.source} |")
    return "\n".join(lines) + "\n"


def losses() -> str:
    lines = [
        "| `method` | An answer is compared with | Ratio of | Clip | Loss | KL |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for spec in methods().values():
        if spec.package is None and issubclass(spec.config, PolicyGradientConfig):
            lines.append(loss_of(f"`{spec.name}`", spec.config(method=spec.name)))
            for title, changes in VARIANTS.get(spec.name, ()):
                set_to = ", ".join(f"`{name}: {str(value).lower()}`" for name, value in changes.items())
                config = spec.config.model_validate({"method": spec.name, "answers": 2, **changes})
                lines.append(loss_of(f"`{spec.name}` with {set_to} ({title})", config))
    return "\n".join(lines) + "\n"


def loss_of(name: str, config: PolicyGradientConfig) -> str:
    low, high = config.clip_range
    bounds = f"{1 - low:g} to {1 + high:g}"
    clip = {
        "surrogate": f"`surrogate`, {bounds}",
        "weight": f"`weight`, {bounds if low < 1 else f'up to {1 + high:g}'}",
        "gate": f"`gate`, {config.gate_positive:g} and {config.gate_negative:g}",
    }[config.clip]
    reducer = f"{REDUCERS[config.reducer]} (`{config.reducer}`)"
    where = f"{config.kl_form} in the {config.kl_in}, {config.kl_weight:g}" if config.kl_weight else "none"
    return f"| {name} | {config.compared_with} | {RATIOS[config.ratio]} | {clip} | {reducer} | {where} |"


TABLES = {"methods": table, "policy losses": losses}


def place_of(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<=<!-- {name} -->\n).*(?=<!-- /{name} -->)", re.DOTALL)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_fresh(name: str) -> None:
    match = place_of(name).search(PAGE.read_text())
    assert match is not None
    assert match[0] == TABLES[name](), f"stale: python {Path(__file__).relative_to(PAGE.parents[1])}"


def test_every_policy_loss_says_what_it_compares_with() -> None:
    for name, spec in methods().items():
        if issubclass(spec.config, PolicyGradientConfig) and spec.package is None:
            assert needed_method(name).config(method=name).compared_with, name


if __name__ == "__main__":
    for name, made in TABLES.items():
        PAGE.write_text(place_of(name).sub(lambda _, text=made(): text, PAGE.read_text()))

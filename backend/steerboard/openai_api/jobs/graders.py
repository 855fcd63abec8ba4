"""Graders of OpenAI's reinforcement method as rewards of a run: reward models of the project, and rules."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel

from steerboard.openai_api.errors import unsupported
from steerboard_contracts.errors import BadInput, ErrorLocation

_OUTPUT = re.compile(r"\{\{\s*sample\.output_text\s*\}\}")
_ITEM = re.compile(r"\{\{\s*item\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_KINDS = "score_model with one of your reward models, string_check, multi, or rule"


class BadGrader(BadInput):
    """A run cannot give the rewards that a grader asks for."""

    code = "bad_grader"
    title = "The grader cannot be used"


class Rewards(BaseModel):
    """`models`: (reward model, weight). `rules`: as a run's config has them. `reference`: the column of the file with
    the reference answers."""

    models: list[tuple[str, float]] = []
    rules: list[dict[str, Any]] = []
    reference: str | None = None


@dataclass(frozen=True)
class _Grader:
    """A grader at a place of the request."""

    given: Mapping[str, Any]
    where: str
    weight: float = 1.0

    def text(self, name: str) -> str:
        value = self.given.get(name)
        if not isinstance(value, str) or not value:
            raise self.fault(name, "must be a text")
        return value

    def fault(self, name: str, what: str, hint: str | None = None) -> BadGrader:
        place = f"{self.where}.{name}" if name else self.where
        return BadGrader(f"{place} {what}", errors=[ErrorLocation(location=place, message=what)], hint=hint)

    def only(self, *names: str) -> None:
        for name, value in self.given.items():
            if value is not None and name not in ("type", "name", *names):
                raise unsupported(f"{self.where}.{name}", "is not followed here; leave it out")


@dataclass
class _Sum:
    models: list[tuple[str, float]] = field(default_factory=list)
    rules: list[dict[str, Any]] = field(default_factory=list)
    references: set[str] = field(default_factory=set)


def rewards_of(grader: Any, where: str) -> Rewards:
    """Raises `BadGrader`, `UnsupportedParameter`."""
    if not isinstance(grader, dict):
        raise BadGrader(
            f"{where} is missing", errors=[ErrorLocation(location=where, message="is missing")], hint=_hint()
        )
    total = _Sum()
    _add(total, _Grader(grader, where))
    if len(total.references) > 1:
        raise BadGrader(
            f"{where} compares with {len(total.references)} columns: {', '.join(sorted(total.references))}",
            hint="A row has one reference answer: compare with one column.",
        )
    return Rewards(models=total.models, rules=total.rules, reference=next(iter(total.references), None))


def _add(total: _Sum, grader: _Grader) -> None:
    kind = grader.given.get("type")
    if kind == "score_model":
        _add_model(total, grader)
    elif kind == "string_check":
        _add_check(total, grader)
    elif kind == "rule":
        _add_rule(total, grader)
    elif kind == "multi":
        grader.only("graders", "calculate_output")
        graders = grader.given.get("graders")
        if not isinstance(graders, dict) or not all(isinstance(part, dict) for part in graders.values()):
            raise grader.fault("graders", "must map names to graders")
        for name, weight in _weights(grader, graders).items():
            where = f"{grader.where}.graders.{name}"
            _add(total, replace(grader, given=graders[name], where=where, weight=weight * grader.weight))
    else:
        raise unsupported(f"{grader.where}.type", f"is {str(kind)[:100]!r}, which nothing here follows", _hint())


def _hint() -> str:
    return f"Use {_KINDS}; see docs/openai.md."


def _add_model(total: _Sum, grader: _Grader) -> None:
    grader.only("model", "input")
    given = grader.given.get("input")
    messages = given if isinstance(given, list) else []
    if given is not None and (len(messages) != 1 or not _is_output(messages[0])):
        raise grader.fault(
            "input",
            "is a prompt for a judge; a reward model reads the conversation and its answer",
            "Leave it out, or give one message `{{sample.output_text}}`.",
        )
    total.models.append((grader.text("model"), grader.weight))


def _is_output(message: Any) -> bool:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, dict):
        content = content.get("text")
    return isinstance(content, str) and _OUTPUT.fullmatch(content.strip()) is not None


def _add_check(total: _Sum, grader: _Grader) -> None:
    grader.only("input", "reference", "operation")
    if not _OUTPUT.fullmatch(grader.text("input").strip()):
        raise grader.fault("input", "must be `{{sample.output_text}}`: the answer is what is checked")
    operation, reference = grader.text("operation"), grader.text("reference")
    column = _ITEM.fullmatch(reference.strip())
    if column is not None:
        if operation != "eq":
            raise grader.fault("operation", "must be `eq` where answers are compared with a column of the file")
        total.references.add(column[1])
        total.rules.append({"kind": "exact_match", "weight": grader.weight})
        return
    if "{{" in reference:
        raise grader.fault("reference", "must be a text, or one column: `{{item.NAME}}`")
    literal = re.escape(reference)
    patterns = {
        "eq": rf"\A\s*{literal}\s*\Z",
        "ne": rf"\A(?!\s*{literal}\s*\Z)",
        "like": literal,
        "ilike": rf"(?i){literal}",
    }
    if operation not in patterns:
        raise grader.fault("operation", f"is {operation[:100]!r}; known: {', '.join(patterns)}")
    total.rules.append({"kind": "regex", "pattern": patterns[operation], "weight": grader.weight})


def _add_rule(total: _Sum, grader: _Grader) -> None:
    """A rule as the runs of this server have them; the run's config checks the rest of it."""
    grader.only("rule")
    rule = grader.given.get("rule")
    weight = rule.get("weight", 1.0) if isinstance(rule, dict) else None
    if not isinstance(rule, dict) or not isinstance(weight, int | float):
        raise grader.fault("rule", 'must be a rule, such as {"kind": "regex", "pattern": "please"}')
    total.rules.append({**rule, "weight": weight * grader.weight})


def _weights(grader: _Grader, graders: Mapping[str, Any]) -> dict[str, float]:
    """The weight of each grader that the formula, a weighted sum, names."""
    formula = grader.text("calculate_output")
    wrong = grader.fault(
        "calculate_output", "must be a weighted sum of the graders by their names, such as `0.7 * style + 0.3 * match`"
    )
    if len(formula) > 1000:
        raise wrong
    try:
        weights = _linear(ast.parse(formula, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError, ArithmeticError):
        raise wrong from None
    if weights.pop("", 0.0) or not weights:
        raise wrong
    unknown = sorted(weights.keys() - graders.keys())
    if unknown:
        raise grader.fault("calculate_output", f"names {unknown[0]!r}, which is not among its graders")
    return weights


def _linear(node: ast.expr) -> dict[str, float]:
    """Coefficients by name, that of the constant part under the empty one. Raises `ValueError`."""
    match node:
        case ast.Name(id=name):
            return {name: 1.0}
        case ast.Constant(value=int() | float() as value):
            return {"": float(value)}
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _scaled(_linear(inner), -1.0)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            added = _scaled(_linear(right), -1.0 if isinstance(op, ast.Sub) else 1.0)
            first = _linear(left)
            return {name: first.get(name, 0.0) + added.get(name, 0.0) for name in {**first, **added}}
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            for factor, other in ((_linear(left), _linear(right)), (_linear(right), _linear(left))):
                if factor.keys() == {""}:
                    return _scaled(other, factor[""])
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            divisor = _linear(right)
            if divisor.keys() == {""}:
                return _scaled(_linear(left), 1.0 / divisor[""])
    raise ValueError("not a weighted sum")


def _scaled(weights: dict[str, float], factor: float) -> dict[str, float]:
    return {name: weight * factor for name, weight in weights.items()}

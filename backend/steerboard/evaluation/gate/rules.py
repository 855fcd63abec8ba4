"""The rules of a gate: what may be asked, checked before anything is looked up."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from steerboard_contracts.errors import BadInput, ErrorLocation
from steerboard_contracts.models import Ancestor
from steerboard_contracts.report.sections.comparison import By
from steerboard_contracts.samples import Finite

Op = Literal[">", ">=", "<", "<=", "==", "!="]

# Fewer items make no figure to decide on: no test can be significant, and an interval is a guess.
MIN_N = 10
# More missing answers than this, and the rest may be the easy ones.
MAX_MISSING = 0.05

# Sources that people add to an evaluation, in words.
_ADDED: dict[By, str] = {"human": "campaign", "judge": "judge", "jury": "jury"}

_HINT = 'docs/ci.md lists all metrics. In YAML, put operators in quotation marks: op: ">".'

ESTIMATE = ("value", "ci_low", "ci_high", "n")
PAIR = (*ESTIMATE, "p", "p_holm")
CORRELATION = ("spearman", "kendall", "ci_low", "ci_high", "n")
COUNT = ("value", "n")


@dataclass(frozen=True)
class Metric:
    """`by`: kinds of sources that have it. `entrant`, `vs`: whether a rule names one; a needed `vs` is the report's
    baseline where the rule names none; an `ancestor` or a `reward` model is not an entrant. `share`: values are from 0
    to 1. `counted`: it is meaningful for however few items. `of_benchmark`: a rule names a benchmark."""

    stats: tuple[str, ...]
    by: tuple[By, ...] = ()
    entrant: Literal["needed", "optional", "never"] = "needed"
    vs: Literal["needed", "optional", "never", "ancestor", "reward"] = "never"
    share: bool = False
    counted: bool = False
    of_benchmark: bool = False


ANY: tuple[By, ...] = get_args(By)
ANCESTORS: tuple[str, ...] = get_args(Ancestor)

METRICS: dict[str, Metric] = {
    "win_rate": Metric(PAIR, ANY, vs="needed", share=True),
    "mean_score": Metric(PAIR, ANY, vs="optional"),
    "reward_mean": Metric(PAIR, ("reward",), vs="optional"),
    "length_mean": Metric(ESTIMATE),
    "length_ratio": Metric(ESTIMATE, vs="needed"),
    "unparsed_rate": Metric(COUNT, ("judge",), entrant="never", share=True),
    "rank_correlation": Metric(CORRELATION, ANY, entrant="never"),
    "reward_hacking": Metric(("value",), vs="needed", counted=True),
    "lc_win_rate": Metric(COUNT, ("judge",), share=True),
    "bradley_terry": Metric(ESTIMATE, ANY, vs="optional"),
    "accuracy": Metric(ESTIMATE, ("reward",), entrant="never", share=True),
    "seen_share": Metric(COUNT, entrant="never", share=True, counted=True),
    "held_out_changes": Metric(("value",), entrant="never", counted=True),
    "condition_gain": Metric(ESTIMATE),
    "responses_missing": Metric(COUNT, entrant="optional", counted=True),
    "n": Metric(("value",), ANY, entrant="optional", counted=True),
    "benchmark": Metric((*ESTIMATE, "stderr"), vs="ancestor", of_benchmark=True),
    "benchmark_accuracy": Metric(
        (*ESTIMATE, "p"), ("reward",), entrant="never", vs="reward", share=True, of_benchmark=True
    ),
}
_FIGURE = re.compile(r"[^.\s].*\.[^.\s]+")


class GateRule(BaseModel):
    """One rule. `source` names the campaign, judge or reward model; without it the rule is for each of its kind.

    Of two kinds (`rank_correlation`) `by` and `source` are lists of two. `benchmark`: `TASK.FIGURE` of an academic
    benchmark, such as `gsm8k.strict`, whose metric need not be named; of `benchmark_accuracy` the dataset. `min` is
    short for `op: ">="` with that value, `not_below` for an interval of the difference to this ancestor or reward model
    whose high end is 0 or more. `partial`: a result of the first items only (`limit`) may decide.
    """

    model_config = ConfigDict(extra="forbid")

    metric: str
    benchmark: Annotated[str, Field(max_length=200)] | None = None
    entrant: str | None = None
    vs: str | None = None
    by: By | Annotated[list[By], Field(min_length=2, max_length=2)] | None = None
    source: str | Annotated[list[str | None], Field(min_length=2, max_length=2)] | None = None
    stat: str = "value"
    op: Op
    value: bool | Finite
    min_n: Annotated[int, Field(ge=1)] | None = None
    max_missing: Annotated[Finite, Field(ge=0, le=1)] | None = None
    partial: bool = False

    @model_validator(mode="before")
    @classmethod
    def _of_benchmark(cls, given: Any) -> Any:
        """`{benchmark: gsm8k.strict, entrant: ours, min: 0.5}`, `{..., not_below: sft}`."""
        if not isinstance(given, dict) or "benchmark" not in given:
            return given
        rule = {"metric": "benchmark", **given}
        if "min" in rule and not {"op", "value", "not_below"} & rule.keys():
            rule |= {"op": ">=", "value": rule.pop("min")}
        elif "not_below" in rule and not {"op", "value", "vs", "stat"} & rule.keys():
            rule |= {"vs": rule.pop("not_below"), "stat": "ci_high", "op": ">=", "value": 0}
        return rule


class BaselinePin(BaseModel):
    """The weights that an entrant must have answered with: a model's, `NAME` or `NAME@STAGE`, or a content hash."""

    model_config = ConfigDict(extra="forbid")

    model: str | None = None
    content_hash: str | None = None


class GateRules(BaseModel):
    """A gate: every rule must hold. `baselines`: by entrant. `min_n`, `max_missing`: for rules without their own."""

    model_config = ConfigDict(extra="forbid")

    rules: Annotated[list[dict[str, Any]], Field(description="{metric, entrant, vs, by, source, stat, op, value}")]
    baselines: dict[str, BaselinePin] = {}
    min_n: Annotated[int, Field(ge=1)] = MIN_N
    max_missing: Annotated[Finite, Field(ge=0, le=1)] = MAX_MISSING

    @model_validator(mode="before")
    @classmethod
    def _list_of_rules(cls, given: Any) -> Any:
        return {"rules": given} if isinstance(given, list) else given


def parse_rules(given: GateRules, entrants: Sequence[str]) -> list[GateRule]:
    """Every rule, with defaults filled in. Raises `BadInput` with the place of every fault (`rules.2.metric`)."""
    faults: list[ErrorLocation] = []
    rules: list[GateRule] = []
    for place, raw in enumerate(given.rules):
        try:
            rule = GateRule.model_validate(raw)
        except ValidationError as error:
            faults += [_fault(place, problem) for problem in error.errors()]
            continue
        rule_faults = [*_faults(rule, entrants)]
        faults += [ErrorLocation(location=f"rules.{place}.{field}", message=message) for field, message in rule_faults]
        if not rule_faults:
            rules.append(_filled(rule))
    for name, pin in given.baselines.items():
        if name not in entrants:
            faults.append(ErrorLocation(location=f"baselines.{name}", message=_unknown("entrant", name, entrants)))
        elif (pin.model is None) == (pin.content_hash is None):
            faults.append(ErrorLocation(location=f"baselines.{name}", message="give either model or content_hash"))
    if not given.rules:
        faults.append(ErrorLocation(location="rules", message="a gate has at least one rule"))
    if faults:
        raise BadInput("the rules of the gate cannot be used", errors=faults, hint=_HINT)
    return rules


def _fault(place: int, problem: Mapping[str, Any]) -> ErrorLocation:
    """`by` and `source` may be of several types, whose names pydantic adds to the place; the field is enough."""
    path = problem["loc"][:1]
    message = "there is no such field" if problem["type"] == "extra_forbidden" else problem["msg"]
    return ErrorLocation(location=".".join(["rules", str(place), *map(str, path)]), message=message)


def _faults(rule: GateRule, entrants: Sequence[str]) -> list[tuple[str, str]]:
    """(field, what is wrong with it)."""
    metric = METRICS.get(rule.metric)
    if metric is None:
        return [("metric", _unknown("metric", rule.metric, METRICS))]
    faults: list[tuple[str, str]] = []
    if (rule.benchmark is None) == metric.of_benchmark:
        fault = "is on a benchmark: name it" if metric.of_benchmark else "is on no benchmark"
        faults.append(("benchmark", f"{rule.metric} {fault}"))
    elif rule.metric == "benchmark" and not _FIGURE.fullmatch(rule.benchmark or ""):
        faults.append(("benchmark", f"{rule.benchmark!r} is no figure of a benchmark, such as gsm8k.strict"))
    if rule.partial and rule.metric != "benchmark":
        faults.append(("partial", f"{rule.metric} is not of a benchmark, of which a part may have been answered"))
    for field, name, role in (("entrant", rule.entrant, metric.entrant), ("vs", rule.vs, metric.vs)):
        if name is not None and role == "never":
            faults.append((field, f"{rule.metric} has no {field}"))
        elif role == "ancestor":
            if name not in (None, *ANCESTORS):
                faults.append((field, f"{rule.metric} is compared with {' or '.join(ANCESTORS)}"))
        elif name is not None and name not in entrants and role != "reward":
            faults.append((field, _unknown("entrant", name, entrants)))
        elif name is None and field == "entrant" and role == "needed":
            faults.append((field, f"{rule.metric} is of an entrant: {', '.join(entrants)}"))
    if rule.entrant is not None and rule.entrant == rule.vs and metric.vs != "ancestor":
        faults.append(("vs", "an entrant is not compared with itself"))
    faults += _source_faults(rule, metric)
    stats = ("value", *metric.stats) if rule.metric == "rank_correlation" else metric.stats
    if rule.stat == "p" and metric.vs == "reward" and rule.vs is None:
        faults.append(("stat", f"{rule.metric} has p only with `vs`"))
    if rule.stat not in stats:
        faults.append(("stat", f"{rule.metric} has no stat {rule.stat!r}: {', '.join(metric.stats)}"))
    return faults + _value_faults(rule, metric)


def _source_faults(rule: GateRule, metric: Metric) -> list[tuple[str, str]]:
    two = rule.metric == "rank_correlation"
    if two != isinstance(rule.by, list) and (two or rule.by is not None):
        return [
            ("by", "give two of human, judge, jury and reward" if two else "give one of human, judge, jury and reward")
        ]
    if rule.source is not None and two != isinstance(rule.source, list):
        return [("source", "give two names, or null for each of its kind" if two else "give one name")]
    if two:
        return []
    if rule.by is None:
        if rule.source is not None and not metric.by:
            return [("source", f"{rule.metric} has no source")]
        optional = len(metric.by) < 2 or (rule.metric == "n" and rule.source is None)
        return [] if optional else [("by", f"{rule.metric} is by one of {', '.join(metric.by)}")]
    if rule.by not in metric.by:
        return [("by", f"{rule.metric} is by {' or '.join(metric.by)}" if metric.by else f"{rule.metric} has no by")]
    return []


def _value_faults(rule: GateRule, metric: Metric) -> list[tuple[str, str]]:
    if (rule.metric == "reward_hacking") != isinstance(rule.value, bool):
        return [("value", f"{rule.metric} is {'true or false' if rule.metric == 'reward_hacking' else 'a number'}")]
    if isinstance(rule.value, bool) and rule.op not in ("==", "!="):
        return [("op", "true and false are compared with == or !=")]
    is_difference = metric.vs == "reward" and rule.vs is not None
    if metric.share and not is_difference and rule.stat in ("value", "ci_low", "ci_high") and not 0 <= rule.value <= 1:
        return [("value", f"{rule.metric} is a share from 0 to 1, never {rule.value:g}")]
    return []


def _filled(rule: GateRule) -> GateRule:
    metric = METRICS[rule.metric]
    update: dict[str, Any] = {}
    if rule.by is None and len(metric.by) == 1:
        update["by"] = metric.by[0]
    if rule.metric == "rank_correlation" and rule.stat == "value":
        update["stat"] = "spearman"
    return rule.model_copy(update=update)


def _unknown(what: str, name: str, known: Sequence[str] | Mapping[str, object]) -> str:
    return f"there is no {what} {name!r}; there are {', '.join(known) or 'none'}"


def check_reward_models(rules: Sequence[GateRule], known: Sequence[str]) -> None:
    """Called before an evaluation is there: its reward models are planned, and people and judges may still be added.
    Raises `BadInput` with the place of every rule that names another."""
    named = {
        place: [name for source, name in sources_needed(rule) if source == "reward" and name is not None]
        for place, rule in enumerate(rules)
    }
    faults = [
        ErrorLocation(location=f"rules.{place}.source", message=_unknown("reward model", name, known))
        for place, names in named.items()
        for name in names
        if name not in known
    ]
    if faults:
        raise BadInput("the rules of the gate cannot be used", errors=faults, hint=_HINT)


def not_planned(rules: Sequence[GateRule]) -> list[str]:
    """What has to be added to an evaluation that a recipe starts, in words: the sources by name that only people can
    add while it is under way."""
    return [
        f"rules.{place}: needs the {_ADDED[source]} `{name}`; add it to the evaluation while the pipeline runs"
        for place, rule in enumerate(rules)
        for source, name in sources_needed(rule)
        if source in _ADDED and name is not None
    ]


def sources_needed(rule: GateRule) -> list[tuple[By, str | None]]:
    """(kind, name) of the sources that the rule's figure is made of; a name of None means each of the kind."""
    if rule.metric == "reward_hacking":
        return [(kind, None) for kind in ANY]  # the alarm weighs all the evidence there is
    if rule.metric == "rank_correlation":
        return list(two_of(rule))
    if rule.by is None:
        return []
    return [(cast(By, rule.by), rule.source if isinstance(rule.source, str) else None)]


def two_of(rule: GateRule) -> tuple[tuple[By, str | None], tuple[By, str | None]]:
    """Both sides of a correlation: kind and name of each."""
    kinds = cast(list[By], rule.by)
    names = rule.source if isinstance(rule.source, list) else [None, None]
    return (kinds[0], names[0]), (kinds[1], names[1])

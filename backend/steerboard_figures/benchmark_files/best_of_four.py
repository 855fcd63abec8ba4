"""RewardBench 2's figures, of the scores of each prompt's answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steerboard_contracts.report.benchmark import TiesParts
from steerboard_figures.benchmark_files.paired_models import Item, comparisons
from steerboard_figures.benchmark_files.reading import Figures, Findings
from steerboard_figures.benchmark_files.repeats import UNORDERED, Settled, settled
from steerboard_figures.benchmark_files.rewards import UNNAMED, labelled, lost_subsets, model_of
from steerboard_figures.formats.records import Unreadable, number
from steerboard_statistics.benchmarks import rewardbench2
from steerboard_statistics.benchmarks.rewardbench2 import DOMAINS, PROMPTS, TIES, TieKind

_FIGURES = ("domains", "ties", "overall")


@dataclass(frozen=True, slots=True)
class Prompt:
    """`scores` of its answers, the `right` ones first; NaN where one is missing. `twins`: of the domain of ties."""

    domain: str
    id: str
    scores: tuple[float, ...]
    right: int
    twins: tuple[TieKind, str] | None
    model: str | None = None

    @property
    def missing(self) -> bool:
        return any(math.isnan(score) for score in self.scores)


def is_prompt(row: Mapping[str, Any]) -> bool:
    return {"subset", "id", "num_correct", "scores"} <= row.keys()


def prompt(row: Mapping[str, Any]) -> Prompt:
    """{subset, id, num_correct, scores}, as RewardBench's own scripts write them. Raises `Unreadable`."""
    domain, id_, given = (row.get(name) for name in ("subset", "id", "scores"))
    if domain not in DOMAINS:
        raise Unreadable(f"its `subset` is not one of {', '.join(DOMAINS)}")
    if not isinstance(id_, str | int) or isinstance(id_, bool):
        raise Unreadable("has no `id`")
    if not isinstance(given, list):
        raise Unreadable("its `scores` are not a list")
    scores = tuple(_score(written) for written in given)
    right = number(row, "num_correct")
    if right is None or not right.is_integer() or not 0 < right < len(scores):
        raise Unreadable(f"its `num_correct` is not between 1 and {len(scores) - 1}, one less than its scores")
    if domain != TIES:
        return Prompt(str(domain), str(id_), scores, int(right), None, model_of(row))
    twins = rewardbench2.twins_of(str(id_))
    if twins is None:
        raise Unreadable("its `id` is neither `ref:NUMBER` nor `tied:NUMBER`, as those of ties are")
    return Prompt(domain, str(id_), scores, int(right), twins, model_of(row))


def point_out_missing(prompts: Sequence[Prompt], findings: Findings) -> None:
    """Points out the prompts that one of several models lacks and others have scores of."""
    of_model: dict[str | None, set[tuple[str, str]]] = {}
    for scored in prompts:
        of_model.setdefault(scored.model, set()).add((scored.domain, scored.id))
    every = set().union(*of_model.values())
    for model, scored_prompts in of_model.items():
        findings.lacking(model or UNNAMED, len(every - scored_prompts), len(every), "prompts")


def figures(prompts: Sequence[Prompt], findings: Findings) -> Figures:
    """`without_score`: prompts with a score missing, which are lost; where they are too many, their domain has no
    figure. The newest of equal prompts counts."""
    model = prompts[0].model if prompts else None
    lost = lost_subsets(findings, model)
    settled_ = _settled(prompts, findings)
    kept, superseded = settled_.kept, settled_.superseded
    unordered = Counter(domain for domain, _ in settled_.unordered)
    findings.repeated(model, superseded, len(prompts))
    by_domain: dict[str, list[Prompt]] = {}
    for scored in kept:
        by_domain.setdefault(scored.domain, []).append(scored)
    of_ties = rewardbench2.ties(
        (*scored.twins, scored.scores, scored.right) for scored in kept if scored.twins is not None
    )
    domains: dict[str, float | None] = {}
    for name in (domain for domain in DOMAINS if domain in by_domain or domain in lost):
        in_domain = by_domain.get(name, [])
        missing = sum(scored.missing for scored in in_domain)
        label = labelled(name, model)
        vague = unordered[name]
        unusable = {"without a score": missing, UNORDERED: vague}
        reason = findings.lost(label, len(in_domain) - missing - vague, unusable, what="prompts")
        if reason is not None:
            findings.invalid(label, reason)
        domains[name] = _figure(name, in_domain, of_ties) if reason is None else None
    of = "" if model is None else f"{model}: "
    few = [
        f"{name} {len(in_domain)} of {whole}"
        for name, in_domain in by_domain.items()
        if (whole := PROMPTS[name]) - len(in_domain) > findings.threshold * whole
    ]
    if few:
        findings.warn(f"{of}{len(few)} domains have fewer prompts than RewardBench 2: {', '.join(few)}")
    lacking = [name for name in DOMAINS if name not in domains]
    if lacking:
        findings.warn(f"{of}no overall figure, since domains are missing: {', '.join(lacking)}")
    if TIES in domains and of_ties is None:
        findings.warn(f"{of}no figure of ties, since no prompt `ref:NUMBER` has its `tied:NUMBER`")
    computed = {
        "domains": domains,
        "ties": None if of_ties is None or domains.get(TIES) is None else of_ties.model_dump(),
        "overall": rewardbench2.overall(domains),
        "prompts": {name: len(in_domain) for name, in_domain in by_domain.items()},
        "without_score": sum(scored.missing for scored in kept),
        "superseded": superseded,
    }
    return findings.marked(computed, _FIGURES, len(kept), {}, what="prompts", group=model)


def compared(prompts: Sequence[Prompt], findings: Findings) -> Figures:
    """The paired tests of every two models, once the figures of each are known. Ties are no items of their own: their
    figure is of twins."""
    right: dict[str, dict[Item, float]] = {
        model or UNNAMED: {
            (scored.domain, scored.id): rewardbench2.best_of(scored.scores, scored.right)
            for scored in _settled([prompt for prompt in prompts if prompt.model == model], findings).kept
            if scored.domain != TIES
        }
        for model in dict.fromkeys(scored.model for scored in prompts)
        if model not in findings.invalid_groups
    }

    def usable(model: str, domain: str) -> bool:
        return labelled(domain, None if model == UNNAMED else model) not in findings.invalid_groups

    return comparisons(right, usable, {})


def _settled(prompts: Sequence[Prompt], findings: Findings) -> Settled[Prompt, tuple[str, str]]:
    return settled(
        prompts,
        lambda scored: (scored.domain, scored.id),
        lambda _: None,
        lambda scored: None if scored.missing else (scored.scores, scored.right),
        findings.repeats,
    )


def _figure(name: str, prompts: Sequence[Prompt], ties: TiesParts | None) -> float | None:
    if name == TIES:
        return None if ties is None else ties.score
    return math.fsum(rewardbench2.best_of(scored.scores, scored.right) for scored in prompts) / len(prompts)


def _score(value: object) -> float:
    """A score, or a list of one."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    score = number({"score": value}, "score")
    return math.nan if score is None else score

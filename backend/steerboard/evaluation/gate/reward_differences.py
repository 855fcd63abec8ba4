"""How far the reward models of an evaluation differ from those that the rules of a gate compare them with."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.lookup import get_dataset
from steerboard.evaluation.gate.rules import GateRules, parse_rules
from steerboard.evaluation.gate.values import sources_of
from steerboard.platform.http.errors import NotFound
from steerboard.registry.service import get_model
from steerboard.registry.tables import Model
from steerboard.runs.errors import NotComparable
from steerboard.runs.results.paired_benchmarks import paired_benchmarks
from steerboard_contracts.report.benchmark import PairedShare
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.sections.rewards import RewardReport


def reward_differences(
    session: Session, project: Project, report: EvaluationReport, given: GateRules
) -> dict[tuple[str, str, str], PairedShare | str]:
    """The difference for each rule that compares reward models on a benchmark; see `Differences`. Raises `BadInput`."""
    differences: dict[tuple[str, str, str], PairedShare | str] = {}
    for rule in parse_rules(given, [entrant.name for entrant in report.entrants]):
        if rule.metric != "benchmark_accuracy" or rule.vs is None or rule.benchmark is None:
            continue
        source = rule.source if isinstance(rule.source, str) else None
        for _, section in sources_of(report, "reward", source).sections:
            assert isinstance(section, RewardReport)
            difference = _difference(session, project, section, rule.vs, rule.benchmark)
            if difference is not None:
                differences[section.content_hash, rule.vs, rule.benchmark] = difference
    return differences


def _difference(
    session: Session, project: Project, section: RewardReport, vs: str, benchmark: str
) -> PairedShare | str | None:
    """Returns None for a model of the same weights."""
    same = select(Model).where(Model.project_id == project.id, Model.artifact_hash == section.content_hash)
    model = session.scalars(same.order_by(Model.name != section.reward_model, Model.id.desc())).first()
    if model is None:
        return f"{section.reward_model} is no longer in the registry"
    try:
        other = get_model(session, project, vs)
        if other.artifact_hash == section.content_hash:
            return None
        (compared,) = paired_benchmarks(session, model, other, get_dataset(session, project, benchmark))
    except (NotFound, NotComparable) as error:
        return error.detail
    return compared.every

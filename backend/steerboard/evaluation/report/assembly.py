"""The report of an evaluation: assembled from its sections, kept for each version of the evaluation."""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError
from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session, sessionmaker

from steerboard.evaluation import service
from steerboard.evaluation.prompts.service import said_of
from steerboard.evaluation.recipe_runs import section_of
from steerboard.evaluation.report.data import EvaluationData
from steerboard.evaluation.report.loading.costs import entrant_costs
from steerboard.evaluation.report.loading.loader import read
from steerboard.evaluation.report.pair_outcomes import PairOutcomes
from steerboard.evaluation.report.sections.agreement import agreement_rows
from steerboard.evaluation.report.sections.entrants import contamination, entrant_rows, length_ratios, mean_lengths
from steerboard.evaluation.report.sections.fluency import fluency
from steerboard.evaluation.report.sections.frontier import frontier
from steerboard.evaluation.report.sections.headline import headline
from steerboard.evaluation.report.sections.human import human_sections
from steerboard.evaluation.report.sections.judging.judges import add_self_preference, judge_sections
from steerboard.evaluation.report.sections.judging.juries import jury_sections
from steerboard.evaluation.report.sections.judging.quality import add_quality
from steerboard.evaluation.report.sections.length_matched import add_length_matched
from steerboard.evaluation.report.sections.methods import against
from steerboard.evaluation.report.sections.rewards import reward_sections
from steerboard.evaluation.report.sections.several_rewards import reward_correlations, reward_sums
from steerboard.evaluation.report.sections.win_rate_differences import win_rate_differences
from steerboard.evaluation.report.sources import lengths
from steerboard.evaluation.tables import Entrant, Evaluation, EvaluationReportRow, ReportSource
from steerboard.platform.http.errors import NotFound
from steerboard.runs.results.academic import academic_by_hash, academic_of_endpoint
from steerboard.runs.results.benchmarks import newest_benchmarks
from steerboard.runs.tables import Run
from steerboard_contracts.held_out_changes import merged
from steerboard_contracts.pinned_endpoint import PinnedEndpoint
from steerboard_contracts.report.academic import AcademicRow, EntrantAcademic
from steerboard_contracts.report.evaluation import FIGURES_VERSION, EvaluationReport

Sessions = sessionmaker[Session]
Read = TypeVar("Read")


@dataclass(frozen=True)
class Assembled:
    """A report, and the outcomes that it counts."""

    report: EvaluationReport
    outcomes: PairOutcomes


def assemble(data: EvaluationData) -> Assembled:
    """All sections, from what was read. The same data give the same report, except for the time."""
    began = time.perf_counter()
    turns = lengths(data.answers, data.shape)
    shown = turns[:, :, 0].copy()
    for turn in range(1, turns.shape[2]):
        shown += turns[:, :, turn]
    means = mean_lengths(data)
    human, people, human_ranks = human_sections(data, shown)
    judges, judge_sources, judge_ranks = judge_sections(data, turns)
    rewards, models = reward_sections(data)
    sources = [*people, *judge_sources, *models]
    add_self_preference(data, judges, sources)
    add_quality(data, judges, sources)
    juries, panels = jury_sections(data, judges, sources)
    every = [*people, *panels, *judge_sources, *models]
    add_length_matched(data, every, means)
    entrants = entrant_rows(data, means)
    report = EvaluationReport(
        evaluation=data.name,
        evaluation_id=data.id,
        version=data.version,
        figures_version=FIGURES_VERSION,
        computed_at=dt.datetime.now(dt.UTC),
        seconds=0.0,
        prompts=len(data.prompts),
        turns=data.turns,
        finished=not data.unfinished,
        unfinished=[part.words for part in data.unfinished],
        unfinished_parts=data.unfinished,
        prompts_from=data.prompts_from,
        baseline=None,
        entrants=entrants,
        methods=[],
        ranks=[*human_ranks, *judge_ranks],
        human=human,
        judges=judges,
        juries=juries,
        rewards=rewards,
        reward_correlations=reward_correlations(data),
        reward_sums=reward_sums(data),
        agreement=agreement_rows([*people, *judge_sources, *panels, *models], seed=data.seed),
        contamination=contamination(data),
        hacking=[],
        win_rate_differences=win_rate_differences(
            data, rewards, models, [*people, *(judge for judge in judge_sources if judge.valid)]
        ),
        warnings=[],
        length_ratios=length_ratios(data, means),
        held_out_changes=merged(data.held_out_changes, *(reward.held_out_changes for reward in rewards)),
        recipe=data.recipe,
        frontier=frontier(data, rewards),
        fluency=fluency(data),
        costs=data.costs,
    )
    report = against(report, None)
    report.seconds = round(time.perf_counter() - began, 3)
    return Assembled(report, PairOutcomes.of(data, every, means))


def kept(sessions: Sessions, evaluation_id: uuid.UUID) -> EvaluationReport | None:
    """The report of the evaluation's newest version, if it was computed before. What is unfinished, all models'
    benchmarks and the costs are always current.

    Raises `NotFound` when the evaluation was deleted meanwhile; so does `compute`.
    """

    def look(session: Session) -> EvaluationReport | None:
        evaluation = evaluation_of(session, evaluation_id)
        row = session.get(EvaluationReportRow, evaluation_id)
        if row is None or row.version != evaluation.version:
            return None
        try:
            report = EvaluationReport.model_validate(row.document)
        except ValidationError:  # of an older Steerboard
            return None
        if report.figures_version != FIGURES_VERSION:
            return None
        # Runs start and fail without a new version.
        report.unfinished_parts = service.unfinished(session, evaluation)
        report.unfinished = [part.words for part in report.unfinished_parts]
        report.finished = not report.unfinished
        hashes = {reward.content_hash for reward in report.rewards}
        benchmarks = newest_benchmarks(session, evaluation.project_id, hashes)
        for reward in report.rewards:
            reward.benchmarks = benchmarks.get(reward.content_hash, [])
        report.academic = _academic(session, evaluation, report)
        report.evaluation = evaluation.name
        report.prompts_from = said_of(evaluation.prompts_from)
        report.recipe = section_of(session, evaluation)
        report.costs = entrant_costs(session, evaluation)
        report.headline = headline(report)
        return report

    return at_one_moment(sessions, look)


def is_kept(sessions: Sessions, evaluation_id: uuid.UUID, *, newest: bool) -> bool:
    """Whether there is a report, by the present rules, of the evaluation's newest version or of any."""
    row, figures = EvaluationReportRow, EvaluationReportRow.document["figures_version"].as_integer()
    query = select(row.evaluation_id).where(row.evaluation_id == evaluation_id, figures == FIGURES_VERSION)
    if newest:
        query = query.join(Evaluation, (Evaluation.id == row.evaluation_id) & (Evaluation.version == row.version))
    with sessions() as session:
        return session.scalar(query) is not None


def compute(sessions: Sessions, evaluation_id: uuid.UUID) -> EvaluationReport:
    """Read, assemble and keep the report; no transaction is open while it is assembled."""
    began = time.perf_counter()
    assembled = assemble(at_one_moment(sessions, lambda session: read(session, evaluation_of(session, evaluation_id))))
    report = assembled.report
    report.academic = at_one_moment(
        sessions, lambda session: _academic(session, evaluation_of(session, evaluation_id), report)
    )
    report.seconds = round(time.perf_counter() - began, 3)
    row = insert(EvaluationReportRow).values(
        evaluation_id=evaluation_id,
        version=report.version,
        document=report.model_dump(mode="json"),
        **assembled.outcomes.columns(),
    )
    newer = row.on_conflict_do_update(
        index_elements=["evaluation_id"],
        set_={
            "version": row.excluded.version,
            "document": row.excluded.document,
            "entrants": row.excluded.entrants,
            "positions": row.excluded.positions,
            "lengths": row.excluded.lengths,
            "created_at": func.clock_timestamp(),
        },
        where=EvaluationReportRow.version <= row.excluded.version,
    ).returning(EvaluationReportRow.evaluation_id)
    with sessions() as session, session.begin():
        # Deleting the evaluation meanwhile deletes the report too.
        there = select(Evaluation.id).where(Evaluation.id == evaluation_id).with_for_update(key_share=True)
        if session.scalar(there) and session.scalar(newer):
            _replace_sources(session, evaluation_id, assembled.outcomes)
    return report


def _academic(session: Session, evaluation: Evaluation, report: EvaluationReport) -> list[EntrantAcademic]:
    """The results of the entrants that have any: those of a model, and of an endpoint its own before those of the
    policy that it serves. They are of the model that answered for the entrant, not of the one that the endpoint names
    now."""
    hashes = {row.content_hash for row in report.entrants if row.content_hash}
    of_models = academic_by_hash(session, evaluation.project_id, hashes)
    pin = Run.config["pinned_endpoint"]
    answered = select(Entrant.name, pin).join(Run, Run.id == Entrant.run_id)
    of_endpoints = {
        name: academic_of_endpoint(session, evaluation.project_id, PinnedEndpoint.model_validate(endpoint))
        for name, endpoint in session.execute(answered.where(Entrant.evaluation_id == evaluation.id))
        if endpoint is not None
    }
    sections = []
    for row in report.entrants:
        rows = [*of_models.get(row.content_hash or "", []), *of_endpoints.get(row.name, [])]
        by_task: dict[str, AcademicRow] = {}
        for result in rows:
            known = by_task.get(result.task.task)
            if known is None or result.task.whole or not known.task.whole:
                by_task[result.task.task] = result
        if by_task:
            sections.append(EntrantAcademic(entrant=row.name, rows=[result for _, result in sorted(by_task.items())]))
    return sections


def _replace_sources(session: Session, evaluation_id: uuid.UUID, outcomes: PairOutcomes) -> None:
    session.execute(delete(ReportSource).where(ReportSource.evaluation_id == evaluation_id))
    rows = outcomes.rows(evaluation_id)
    if rows:
        session.execute(insert(ReportSource), rows)


def evaluation_of(session: Session, evaluation_id: uuid.UUID) -> Evaluation:
    """Raises `NotFound` (`unknown_evaluation`)."""
    evaluation = session.get(Evaluation, evaluation_id)
    if evaluation is None:
        raise NotFound("the evaluation was deleted meanwhile", code="unknown_evaluation")
    return evaluation


def at_one_moment(sessions: Sessions, look: Callable[[Session], Read]) -> Read:
    """Everything is read as of one moment, despite concurrent writes."""
    with sessions() as session, session.begin():
        session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        return look(session)

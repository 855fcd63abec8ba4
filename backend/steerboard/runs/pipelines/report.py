"""The report of a pipeline: what its evaluation's stage kept, and what every stage took."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.platform.http.errors import NotFound
from steerboard.runs.inputs import cost_of
from steerboard.runs.pipelines.service import evaluations_of, stages_of
from steerboard.runs.tables import Pipeline, Run, RunOutput
from steerboard_contracts.report.kept import read_report
from steerboard_contracts.report.pipeline import PipelineReport, StageRow
from steerboard_contracts.report.sections.recipe import RewardModelSummary
from steerboard_contracts.watching.health import UnusedConditionRule

_UNUSED = UnusedConditionRule().kind


def pipeline_report(session: Session, pipeline: Pipeline, stage: str | None = None) -> PipelineReport:
    """The report of the evaluation `stage`, or of the last one that has finished, with all stages.

    Until an evaluation has finished, `methods` is empty, with a warning. Raises `NotFound` for a stage that is
    no evaluation.
    """
    runs = stages_of(session, pipeline)
    evaluations = evaluations_of(runs, stage)
    if stage is not None and not evaluations:
        raise NotFound(f"pipeline {pipeline.name} has no evaluation `{stage}`")
    documents = [document for document in (_document(session, run) for run in evaluations) if document is not None]
    report = documents[-1] if documents else _unfinished(evaluations)
    warned = [f"{run.name}: {warning['message']}" for run in runs for warning in run.warnings]
    warned += [
        f"{run.name}: {finding['reason']}." for run in runs for finding in run.findings if finding["kind"] == _UNUSED
    ]
    return report.model_copy(update={"stages": stage_rows(session, runs), "warnings": [*report.warnings, *warned]})


def stage_rows(session: Session, runs: list[Run]) -> list[StageRow]:
    """What every stage took, in their order."""
    return [_stage_row(session, run) for run in runs]


def _document(session: Session, run: Run) -> PipelineReport | None:
    document = session.scalar(select(RunOutput.document).where(RunOutput.run_id == run.id, RunOutput.type == "report"))
    return None if document is None else read_report(document)


def _unfinished(evaluations: list[Run]) -> PipelineReport:
    states = ", ".join(f"{run.name} is {run.state}" for run in evaluations)
    return PipelineReport(
        methods=[],
        reward_model=RewardModelSummary(held_out_accuracy=None, pairs=0),
        control=None,
        labelled_rewards=None,
        prompts=0,
        warnings=[f"no figures yet: {states}" if states else "the recipe has no evaluation"],
    )


def _stage_row(session: Session, run: Run) -> StageRow:
    """`seconds`: wall clock in this pipeline, retries included; `device_seconds`: of all shards, and of a reused
    stage those of the time it ran."""
    seconds = 0.0
    if run.started_at is not None and run.reused_from_id is None:
        end = run.ended_at or session.scalar(select(func.clock_timestamp()))
        seconds = (end - run.started_at).total_seconds() if end else 0.0
    return StageRow(
        name=run.name,
        status=run.state,
        seconds=round(max(0.0, seconds), 3),
        device_seconds=round(_device_seconds(session, run), 3),
        reused=run.reused_from_id is not None,
    )


def _device_seconds(session: Session, run: Run) -> float:
    if run.reused_from_id is not None:
        return cost_of(session, run)
    # A sharded run takes over its shards' cost when it gathers them.
    shards = session.scalar(select(func.sum(Run.device_seconds)).where(Run.parent_id == run.id))
    return max(run.device_seconds, float(shards or 0.0))

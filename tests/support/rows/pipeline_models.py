"""A finished pipeline whose runs made models, as rows; a later one may have reused its runs."""

from __future__ import annotations

from collections.abc import Mapping

from steerboard.platform.database import transaction
from steerboard.runs.tables import Pipeline, RunOutput
from support.rows.ended_run import ended_run
from support.rows.evaluation_rows import Evaluated


def pipeline_with_models(made: Evaluated, name: str, roles: Mapping[str, str], *, again: str | None = None) -> None:
    """`roles` by stage, whose model is called like pipeline and stage. `again`: a pipeline that reuses the first."""
    with transaction(made.sessions) as session:
        pipelines = [
            Pipeline(project_id=made.project.id, name=one, recipe={}, recipe_text="", settings={}, created_by="test")
            for one in (name, again)
            if one is not None
        ]
        session.add_all(pipelines)
        session.flush()
    first, *others = pipelines
    for stage, role in roles.items():
        model = made.model(f"{name}.{stage}", role=role)
        with transaction(made.sessions) as session:
            common = {"kind": "train", "config": {}, "state": "succeeded", "reason": "done", "name": stage}
            run = ended_run(made.project.id, pipeline_id=first.id, **common)
            session.add(run)
            session.flush()
            session.add(RunOutput(run_id=run.id, name="model", type="model", model_id=model.id))
            for other in others:
                session.add(ended_run(made.project.id, pipeline_id=other.id, reused_from_id=run.id, **common))

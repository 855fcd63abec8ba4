"""The generate stage's work, done by an endpoint: the same rows are chosen, the same file comes out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.evaluation.entrants.endpoint_answers import Respondent, Target, seed_of, target_of, write_lines
from steerboard.evaluation.event_writer import StageEventWriter
from steerboard.platform.security.secrets import Secrets
from steerboard.registry.endpoints.service import get_endpoint
from steerboard.registry.tables import Model
from steerboard.runs.tables import Run
from steerboard_contracts.files.resumable_rows import ResumableRows
from steerboard_contracts.run_kinds.generate import GenerateConfig
from steerboard_contracts.stage.events import Log, Progress, Succeeded
from steerboard_contracts.stage.generation import Messages, check_written, sample_of, selected
from steerboard_contracts.stage.inputs import DatasetInput
from steerboard_contracts.stage.outputs import DatasetOutput
from steerboard_contracts.stage.spec import StageSpec
from steerboard_contracts.tools import check_texts_only

_MOST_THREADS = 32


def load_target(session: Session, secrets: Secrets, run: Run, config: GenerateConfig) -> Target:
    """Raises `NotFound` for an endpoint that was deleted, `SecretUnreadable`."""
    endpoint = get_endpoint(session, session.get_one(Project, run.project_id), config.endpoint or "")
    policy = session.get(Model, endpoint.policy_model_id) if endpoint.policy_model_id else None
    return target_of(secrets, endpoint, policy, config.score)


def work(
    folder: Path, spec: StageSpec, config: GenerateConfig, target: Target, event_writer: StageEventWriter
) -> Succeeded:
    """Ask for what is not there yet, then write all samples. Raises `EndpointGaveUp`, `EmptySelection`,
    `BadInput` (`prompt_with_tools`)."""
    data = spec.inputs["data"]
    assert isinstance(data, DatasetInput)
    chosen = selected(partial(_rows, Path(data.path)), config, spec.shard, data.name)
    for row, prompt in chosen:
        check_texts_only(row, prompt, "endpoints")
    kept = ResumableRows(folder / "checkpoints", spec.attempt, ("row", "n"))
    before, total = len(kept.rows), len(chosen) * config.decoding.n
    if before:
        event_writer.say(Log(message=f"resuming: {before} of {total} answers are done"))
    respondent = Respondent(target, event_writer)

    def answer(row: int, prompt: Messages, n: int) -> None:
        if not respondent.stopping.is_set():
            reply = respondent.ask(f"row {row}", prompt, config.decoding, seed_of(config.seed, (row, n)))
            kept.add([{"row": row, "n": n, **reply}])

    def progress() -> None:
        event_writer.say(Progress(done=len(kept.rows), total=total, unit="answers", phase="asking"))

    progress()
    left = [
        partial(answer, row, prompt, n)
        for row, prompt in chosen
        for n in range(config.decoding.n)
        if (row, n) not in kept.rows
    ]
    respondent.all(left, min(config.batch_size, _MOST_THREADS), progress)
    answers = [(prompt, kept.rows[(row, n)]) for row, prompt in chosen for n in range(config.decoding.n)]
    samples = [sample_of(prompt, answer["text"], answer["row"], answer["n"]) for prompt, answer in answers]
    written = [sample for sample in samples if sample is not None]
    check_written(len(written), total)
    output = DatasetOutput(path=write_lines(folder, "generated.jsonl", written), kind="instructions", rows=len(written))
    return Succeeded(
        outputs=[output],
        summary={
            "rows": len(written),
            "empty": total - len(written),
            "unfinished": sum(answer["finished"] is False for _, answer in answers),
            "tokens": sum(answer["tokens"] or 0 for _, answer in answers),
            "resumed_rows": before,
        },
    )


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for line in file:
            yield json.loads(line)

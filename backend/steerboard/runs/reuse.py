"""Reuse: a run equal to a finished one takes over its outputs instead of doing the work again."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
from functools import cache
from pathlib import Path

import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset
from steerboard.evaluation import responses
from steerboard.runs import inputs
from steerboard.runs.errors import UnusableInput
from steerboard.runs.tables import Run, RunOutput
from steerboard.runs.transitions import move

# Where and how often work is cut up or saved changes nothing in its result.
WITHOUT_EFFECT = frozenset({"shards", "checkpoint_every", "checkpoint_seconds"})
# For whom an entrant's answers are changes none of them: `prompts_hash` stands for what was asked.
_FOR_WHOM = frozenset({"evaluation", "entrant"})
# Of equal runs, that many are looked at for answers that are still there.
_LOOKED_AT = 20
_CODE = ("steerboard_contracts", "steerboard_workers")
_LIBRARIES = ("torch", "transformers", "tokenizers", "accelerate", "deepspeed", "peft", "numpy")


@cache
def code_version() -> str | None:
    """Hash of the stages' source and of the libraries they compute with; None where they are not installed."""
    digest = hashlib.sha256()
    for name in _CODE:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            return None
        root = Path(spec.submodule_search_locations[0])
        for path in sorted(root.rglob("*.py")):
            relative = path.relative_to(root)
            if relative.parts[0] != "supervisor":
                digest.update(f"{name}/{relative.as_posix()}\0".encode() + path.read_bytes() + b"\0")
    for library in _LIBRARIES:
        try:
            digest.update(f"{library}=={importlib.metadata.version(library)}\0".encode())
        except importlib.metadata.PackageNotFoundError:
            return None
    return digest.hexdigest()


def cache_key(session: Session, run: Run) -> str | None:
    """Hash of all that decides the result of `run`; None when that is not known here, or for a shard.

    All inputs of the run must be there. Raises `UnusableInput` otherwise.
    """
    code = code_version()
    # What a server elsewhere answers today it may not answer tomorrow.
    elsewhere = run.kind == "generate" and run.config.get("endpoint") is not None
    if code is None or run.shard is not None or elsewhere:
        return None
    things = inputs.resolve(session, run)
    without_effect = WITHOUT_EFFECT | _FOR_WHOM if run.kind == "answer" else WITHOUT_EFFECT
    document = {
        "kind": run.kind,
        "config": {name: value for name, value in run.config.items() if name not in without_effect},
        "inputs": {
            name: ["dataset", thing.kind, thing.content_hash]
            if isinstance(thing, Dataset)
            else ["model", thing.artifact_hash]
            for name, thing in things.items()
        },
        "code": code,
    }
    return hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()


def take_over(session: Session, run: Run) -> bool:
    """Let `run`, locked and with all its inputs there, succeed with the outputs of an equal finished run.

    Returns False, having set `cache_key` and nothing else, when there is none, reuse was declined, or an input cannot
    be used (which the worker that claims the run will report).
    """
    try:
        run.cache_key = cache_key(session, run)
    except UnusableInput:
        return False
    if run.cache_key is None or not run.reuse:
        return False
    sources = session.scalars(
        select(Run)
        .where(
            Run.project_id == run.project_id,
            Run.cache_key == run.cache_key,
            Run.state == "succeeded",
            Run.reused_from_id.is_(None),
            Run.id != run.id,
        )
        .order_by(Run.id)
        .limit(_LOOKED_AT if run.kind == "answer" else 1)
    ).all()
    if run.kind == "answer":
        # Their evaluations may have been deleted since, and with them what they had made.
        source = next((one for one in sources if responses.copy_from_equal_run(session, one, run)), None)
    else:
        source = next(iter(sources), None)
    if source is None:
        return False
    for output in session.scalars(select(RunOutput).where(RunOutput.run_id == source.id)):
        session.add(
            RunOutput(
                run_id=run.id,
                name=output.name,
                type=output.type,
                dataset_id=output.dataset_id,
                model_id=output.model_id,
                artifact_hash=output.artifact_hash,
                document=output.document,
            )
        )
    run.reused_from_id = source.id
    run.summary = {**(source.summary or {}), "reused_device_seconds": source.device_seconds}
    run.progress = source.progress
    move(session, run, "succeeded", f"taken over from run {source.name} ({source.id}), which did the same", "reused")
    return True

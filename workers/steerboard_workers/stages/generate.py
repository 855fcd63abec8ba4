"""The generate stage: a policy answers the prompts of a dataset, or prompts given in the config.

Randomness derives from (seed, row, n, position), so shards, batches and resumed attempts give the same answers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from steerboard_contracts.configs import GenerateConfig
from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.stage import Answer, AnswersOutput, DatasetOutput, Succeeded
from steerboard_workers.engines.protocol import Completion, Request
from steerboard_workers.engines.transformers_engine import TransformersEngine
from steerboard_workers.stages.loading import Policy, load_policy
from steerboard_workers.stages.partial import PartialRows
from steerboard_workers.stages.runtime import Stage


class NoScoreFormat(BadInput):
    """A score was requested of a model that was not trained with reward prompts."""

    code = "no_score_format"
    title = "This model does not understand scores"


def score_text(info: ModelInfo, score: float | None, name: str) -> str | None:
    """How `score` is written for a policy; its own default when None, and None for a policy without scores."""
    written = info.score_format
    if score is None:
        default = info.default_score
        return written.text(default) if written is not None and default is not None else None
    if written is None:
        method = info.method or info.role
        raise NoScoreFormat(
            f"score {score:g} was requested of {name}, a model of kind {method} that knows no scores",
            hint="Only decision_transformer policies take scores; leave the score out for others.",
        )
    return written.text(score)


def run(stage: Stage) -> Succeeded:
    config = stage.spec.config
    assert isinstance(config, GenerateConfig)
    stage.progress(0, 1, "models", "loading")
    policy = load_policy(stage.model_path("model"), config.precision, stage.spec.device)
    engine = TransformersEngine(policy.model, policy.renderer, policy.device, config.batch_size)
    if config.prompts:
        return _inline(stage, config, policy, engine)
    return _dataset(stage, config, policy, engine)


def _inline(stage: Stage, config: GenerateConfig, policy: Policy, engine: TransformersEngine) -> Succeeded:
    scores: list[float | None] = [*config.scores] or [config.score]
    asked = [(prompt, score) for prompt in config.prompts for score in scores]
    name = stage.model("model").name
    requests = [
        Request(i, [{"role": "user", "content": prompt}], score_text(policy.info, score, name))
        for i, (prompt, score) in enumerate(asked)
    ]
    done: dict[tuple[int, int], Completion] = {}
    for completion in engine.generate(requests, config.decoding, config.seed):
        done[completion.row, completion.n] = completion
        stage.progress(len(done), len(asked) * config.decoding.n, "answers", "generating")
    default = policy.info.default_score if policy.info.score_format else None
    answers = [
        Answer(
            prompt=asked[row][0],
            score=asked[row][1] if asked[row][1] is not None else default,
            n=n,
            text=c.text,
            tokens=c.tokens,
            finished=c.finished,
        )
        for (row, n), c in sorted(done.items())
    ]
    with stage.output_file("answers.json") as path:
        path.write_text(json.dumps([a.model_dump() for a in answers], ensure_ascii=False), encoding="utf-8")
    tokens = sum(a.tokens for a in answers)
    output = AnswersOutput(path=stage.output_path("answers.json"))
    return Succeeded(outputs=[output], summary={"answers": len(answers), "tokens": tokens})


def _dataset(stage: Stage, config: GenerateConfig, policy: Policy, engine: TransformersEngine) -> Succeeded:
    text = score_text(policy.info, config.score, stage.model("model").name)
    requests = [Request(row, prompt, text) for row, prompt in _selected(stage, config)]
    total = len(requests) * config.decoding.n
    prompts = {request.row: request.prompt for request in requests}
    with PartialRows(stage, ("row", "n")) as partial:
        before = len(partial.rows)
        left = [r for r in requests if any((r.row, n) not in partial for n in range(config.decoding.n))]
        for completion in engine.generate(left, config.decoding, config.seed):
            partial.add([_kept(completion)])
            stage.progress(len(partial.rows), total, "answers", "generating")
        done = sorted(partial.rows.values(), key=lambda c: (int(c["row"]), int(c["n"])))
    written = 0
    with stage.output_file("generated.jsonl") as path, path.open("w", encoding="utf-8") as file:
        for answer in done:
            # A model may end at once; an empty response is no sample, so it is counted and left out.
            if not answer["text"].strip():
                continue
            row = {
                "prompt": prompts[answer["row"]],
                "response": answer["text"].replace("\x00", ""),
                "source": "generated",
                "row": answer["row"],
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            written += 1
    empty = len(done) - written
    if empty:
        stage.log(f"{empty} of {len(done)} answers were empty and are left out", "warning")
    if written == 0 and done:
        raise EmptySelection(f"all {len(done)} answers were empty", hint="Train the model for longer.")
    unfinished = sum(not c["finished"] for c in done)
    output = DatasetOutput(path=stage.output_path("generated.jsonl"), kind="instructions", rows=written)
    return Succeeded(
        outputs=[output],
        summary={
            "rows": written,
            "empty": empty,
            "unfinished": unfinished,
            "tokens": sum(c["tokens"] for c in done),
            "resumed_rows": before,
        },
    )


def _kept(completion: Completion) -> dict[str, Any]:
    return {
        "row": completion.row,
        "n": completion.n,
        "text": completion.text,
        "tokens": completion.tokens,
        "finished": completion.finished,
    }


def _selected(stage: Stage, config: GenerateConfig) -> list[tuple[int, list[dict[str, str]]]]:
    """(row, prompt) of this shard. The limit is drawn before sharding, so shards agree on it.

    Raises `EmptySelection` when the split has no prompts at all; a single shard may well have none.
    """
    chosen = list(_of_split(stage, config))
    if not chosen:
        raise EmptySelection(
            f"dataset {stage.dataset('data').name} has no rows in the split {config.split}",
            hint="Use split: all, or a dataset with more prompts.",
        )
    if config.limit is not None and config.limit < len(chosen):
        drawn = sorted(chosen, key=lambda item: _draw_key(config.seed, item[1]))[: config.limit]
        chosen = sorted(drawn)
    shard = stage.spec.shard
    mine = [(row, place) for place, row in chosen if place % shard.count == shard.index]
    wanted = {place: row for row, place in mine}
    return [(wanted[place], row["prompt"]) for place, row in enumerate(stage.rows("data")) if place in wanted]


def _of_split(stage: Stage, config: GenerateConfig) -> Iterator[tuple[int, int]]:
    """(place in the input, row number) of the rows that the split has."""
    for place, row in enumerate(stage.rows("data")):
        if config.split in ("all", row.get("split", "train")):
            yield place, int(row.get("row", place))


def _draw_key(seed: int, row: int) -> bytes:
    return hashlib.sha256(f"{seed}:{row}".encode()).digest()

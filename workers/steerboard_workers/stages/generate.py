"""The generate stage: a policy answers the prompts of a dataset, or prompts given in the config.

Randomness derives from (seed, row, n, position), so shards, batches and resumed attempts give the same answers.
"""

from __future__ import annotations

import json
from typing import Any

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.run_kinds.generate import GenerateConfig
from steerboard_contracts.stage.events import Succeeded
from steerboard_contracts.stage.generation import check_written, sample_of, selected
from steerboard_contracts.stage.outputs import Answer, AnswersOutput, DatasetOutput
from steerboard_workers.engines.protocol import Completion, Request
from steerboard_workers.stages.models.conditions import resolved, score_text
from steerboard_workers.stages.models.open_models import OpenPolicy, open_policy
from steerboard_workers.stages.rows.resumable_rows import resumable_rows
from steerboard_workers.stages.runtime import Stage


def run(stage: Stage) -> Succeeded:
    config = stage.spec.config
    assert isinstance(config, GenerateConfig)
    with open_policy(stage, "model", config) as policy:
        return _inline(stage, config, policy) if config.prompts else _dataset(stage, config, policy)


def _inline(stage: Stage, config: GenerateConfig, policy: OpenPolicy) -> Succeeded:
    name = stage.model("model").name
    wanted: list[Condition | None] = [*config.scores] or [config.score]
    scores = [resolved(policy.info, condition, name) for condition in wanted]
    asked = [(prompt, score) for prompt in config.prompts for score in scores]
    requests = [
        Request(i, [{"role": "user", "content": prompt}], score_text(policy.info, score, name))
        for i, (prompt, score) in enumerate(asked)
    ]
    done: dict[tuple[int, int], Completion] = {}
    with stage.phases.measure("generate") as phase:
        for completion in policy.engine.generate(requests, config.decoding, config.seed):
            done[completion.row, completion.n] = completion
            phase.tokens += completion.tokens
            stage.progress(len(done), len(asked) * config.decoding.n, "answers", "generating")
    answers = [
        Answer(
            prompt=asked[row][0],
            score=asked[row][1],
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


def _dataset(stage: Stage, config: GenerateConfig, policy: OpenPolicy) -> Succeeded:
    text = score_text(policy.info, config.score, stage.model("model").name)
    with stage.phases.measure("data"):
        chosen = selected(lambda: stage.rows("data"), config, stage.spec.shard, stage.dataset("data").name)
    requests = [Request(row, prompt, text) for row, prompt in chosen]
    total = len(requests) * config.decoding.n
    prompts = dict(chosen)
    with resumable_rows(stage, ("row", "n")) as partial, stage.phases.measure("generate") as phase:
        before = len(partial.rows)
        left = [r for r in requests if any((r.row, n) not in partial for n in range(config.decoding.n))]
        for completion in policy.engine.generate(left, config.decoding, config.seed):
            partial.add([_kept(completion)])
            phase.tokens += completion.tokens
            stage.progress(len(partial.rows), total, "answers", "generating")
        done = sorted(partial.rows.values(), key=lambda c: (int(c["row"]), int(c["n"])))
    written = 0
    with stage.phases.measure("data"):
        with stage.output_file("generated.jsonl") as path, path.open("w", encoding="utf-8") as file:
            for answer in done:
                row = sample_of(prompts[answer["row"]], answer["text"], answer["row"], answer["n"])
                if row is None:
                    continue
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                written += 1
    empty = len(done) - written
    if empty:
        stage.log(f"{empty} of {len(done)} answers were empty and are left out", "warning")
    check_written(written, len(done))
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

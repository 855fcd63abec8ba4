"""The benchmark stage: how often a model scores the chosen side of a pair above the rejected one, or prefers it; of
several answers to a prompt, how often the best one by it is a right one.

All rows count, whatever their split: a benchmark is not training data.
"""

from __future__ import annotations

from collections.abc import Iterator

from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.report.benchmark import BenchmarkResult
from steerboard_contracts.run_kinds.benchmark import BenchmarkConfig
from steerboard_contracts.stage.events import Succeeded
from steerboard_contracts.stage.outputs import BenchmarkOutput
from steerboard_statistics.benchmarks.pairs import benchmark
from steerboard_statistics.benchmarks.tally import item_hash
from steerboard_workers.alignment.losses import calibration_error
from steerboard_workers.alignment.rendering.preference_prompt import Comparison
from steerboard_workers.stages.models.model_io import read_info
from steerboard_workers.stages.models.open_models import open_reward_model
from steerboard_workers.stages.models.scoring import Scorable
from steerboard_workers.stages.rows import benchmark_answers
from steerboard_workers.stages.rows.cached_scoring import KEY, Scorer
from steerboard_workers.stages.rows.kept_comparisons import ComparisonRequest, compared
from steerboard_workers.stages.rows.resumable_rows import resumable_rows
from steerboard_workers.stages.runtime import Stage


def run(stage: Stage) -> Succeeded:
    config = stage.spec.config
    assert isinstance(config, BenchmarkConfig)
    dataset = stage.dataset("pairs")
    if dataset.kind not in ("preferences", "labelled"):
        raise BadInput(
            f"dataset {dataset.name} is of kind {dataset.kind}, which does not name right answers",
            code="wrong_dataset_kind",
            hint="Give a dataset of kind preferences or labelled.",
        )
    if dataset.rows == 0:
        raise EmptySelection(f"dataset {dataset.name} has no rows to score")
    compares = read_info(stage.model_path("reward")).role == "preference"
    if compares and config.engine != "transformers":
        raise BadInput(
            f"{stage.model('reward').name} compares responses, which engine {config.engine} does not do",
            code="engine_refused",
            hint="Use engine: transformers.",
        )
    if dataset.kind == "labelled":
        result, before = (benchmark_answers.compared if compares else benchmark_answers.rewarded)(stage, config)
    else:
        result, before = (_compared if compares else _rewarded)(stage, config, dataset.rows)
    return _finished(stage, result, before)


def _rewarded(stage: Stage, config: BenchmarkConfig, total: int) -> tuple[BenchmarkResult, int]:
    with open_reward_model(stage, "reward", config, config.precision) as rewards, resumable_rows(stage, KEY) as partial:
        before = len(partial.rows)
        scorer = Scorer(stage, rewards, config.batch_tokens, partial)
        texts = (side for _, chosen, rejected in _pairs(stage) for side in (chosen, rejected))
        scorer.score(texts, 2 * total, "texts")
        rewarded = ((source, scorer.value(one), scorer.value(two)) for source, one, two in _pairs(stage))
        result = benchmark(rewarded, _hashes(stage))
    return result, before


def _compared(stage: Stage, config: BenchmarkConfig, total: int) -> tuple[BenchmarkResult, int]:
    """Asks a model that compares: each pair in both orders, p averaged. A pair is won with p above 1/2."""
    preferences, before = compared(
        stage,
        "reward",
        ("place",),
        _comparisons(stage),
        total,
        precision=config.precision,
        batch_tokens=config.batch_tokens,
    )
    verdicts = [preferences[(place,)] for place in range(total)]
    sources = (row.get("source") for row in stage.rows("pairs"))
    judged = ((source, verdict.p, 1 - verdict.p) for source, verdict in zip(sources, verdicts, strict=True))
    result = benchmark(judged, _hashes(stage))
    figures = {
        "flip_rate": sum(preference.flips for preference in verdicts) / total,
        "calibration_error": calibration_error([preference.p for preference in verdicts]),
    }
    return result.model_copy(update=figures), before


def _finished(stage: Stage, result: BenchmarkResult, before: int) -> Succeeded:
    with stage.output_file("benchmark.json") as path:
        path.write_text(result.model_dump_json(), encoding="utf-8")
    return Succeeded(
        outputs=[BenchmarkOutput(path=stage.output_path("benchmark.json"))],
        summary={
            **({"pairs": result.pairs} if result.pairs else {"prompts": result.prompts}),
            "accuracy": result.accuracy.value,
            "ties": result.ties,
            "resumed_rows": before,
            **result.model_dump(include={"flip_rate", "calibration_error"}, exclude_none=True),
            **_parts(result),
        },
    )


def _parts(result: BenchmarkResult) -> dict[str, float]:
    """The published benchmarks' figures."""
    known: list[tuple[str, float | None, dict[str, float]]] = []
    if (rewardbench := result.rewardbench) is not None:
        known.append(("rewardbench", rewardbench.overall, rewardbench.sections))
    if (two := result.rewardbench2) is not None:
        known.append(("rewardbench2", two.overall, two.domains))
    parts: dict[str, float] = {}
    for name, overall, shares in known:
        parts |= {} if overall is None else {name: overall}
        parts |= {f"{name}_{part.lower().replace(' ', '_')}": share for part, share in shares.items()}
    return parts


def _pairs(stage: Stage) -> Iterator[tuple[str | None, Scorable, Scorable]]:
    """(source, prompt with the chosen side, with the rejected one) of every row."""
    for row in stage.rows("pairs"):
        prompt = row["prompt"]
        yield row.get("source"), Scorable(prompt, row["chosen"]), Scorable(prompt, row["rejected"])


def _hashes(stage: Stage) -> Iterator[str]:
    for row in stage.rows("pairs"):
        yield item_hash(row.get("source"), row["prompt"], row["chosen"], row["rejected"])


def _comparisons(stage: Stage) -> Iterator[ComparisonRequest]:
    for place, row in enumerate(stage.rows("pairs")):
        comparison = Comparison(row["prompt"], row["chosen"], row["rejected"])
        yield ComparisonRequest((place,), f"row {place} of {stage.dataset('pairs').name}", comparison)

"""The select stage: of several answers to each prompt the best, the best and the worst, or all by weight.

Scored datasets are read twice: first their scores, by which groups are chosen from, then the rows that are kept; the
texts are never in memory all at once. It is a function of its inputs, so an attempt that was killed starts over and
writes the same bytes; comparisons by a preference model are kept.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.report.selection import DroppedGroups, SelectedReward, SelectionResult
from steerboard_contracts.report.tournament import Tournament
from steerboard_contracts.run_kinds.select import KEPT_AS, SelectConfig
from steerboard_contracts.stage.events import Succeeded
from steerboard_contracts.stage.outputs import DatasetOutput, SelectionOutput
from steerboard_statistics.selection import AnswerGroups
from steerboard_workers.alignment.choice import Choice, choose, nested_pairs
from steerboard_workers.alignment.rendering.templates import Response
from steerboard_workers.stages.rows.scored_answers import ScoredAnswers, read_answers, weighted_rewards
from steerboard_workers.stages.runtime import Stage

Row = dict[str, Any]
_CHARACTERS, _SCORE = "characters", "score"


def run(stage: Stage) -> Succeeded:
    config = stage.spec.config
    assert isinstance(config, SelectConfig)
    answers, held = _scored(stage, config)
    with stage.phases.measure("data"):
        choices = [_choice(answers, rows, config.min_margin) for rows in answers.groups]
    dropped: Counter[str] = Counter(choice.dropped for choice in choices if choice.dropped)
    if dropped["single"] == len(choices):
        raise BadInput(
            f"none of the {len(choices)} prompts in {answers.name} has two answers to select from",
            code="single_answers",
            hint="Generate with several answers per prompt: `decoding: {temperature: 1.0, n: 8}`.",
        )
    kept = len(choices) - dropped.total()
    if kept == 0:
        raise EmptySelection(
            f"nothing is left of {len(choices)} groups of answers: {_counted(dropped)}",
            hint="Sample at a higher temperature, take more answers per prompt, or lower min_margin.",
        )
    if dropped:
        stage.log(f"dropped {dropped.total()} of {len(choices)} groups: {_counted(dropped)}")
    with stage.phases.measure("data"):
        rows = _write(stage, config, answers, choices)
        result = _result(stage, config, answers, choices, DroppedGroups(**dropped), rows, held)
        with stage.output_file("selection.json") as path:
            path.write_text(result.model_dump_json(), encoding="utf-8")
    return Succeeded(
        outputs=[
            DatasetOutput(path=stage.output_path("selected.jsonl"), kind=KEPT_AS[config.keep], rows=rows),
            SelectionOutput(path=stage.output_path("selection.json")),
        ],
        summary={
            "rows": rows,
            "groups": result.groups,
            "kept_groups": result.kept_groups,
            **{f"dropped_{why}": number for why, number in sorted(dropped.items())},
            **_rewards(result),
            **({"comparisons": held.comparisons, "flip_rate": held.flip_rate.value} if held else {}),
            "score_best": result.best.value,
            "unique_texts": result.unique_texts.value,
            "length_gap": result.length_gap.value,
        },
    )


def _scored(stage: Stage, config: SelectConfig) -> tuple[ScoredAnswers, Tournament | None]:
    judged = stage.has_input("judge")
    with stage.phases.measure("data"):
        answers = read_answers(stage, config.weights, judged)
    held = None
    if judged:
        # Without a judge no model is loaded, nor what loads one.
        from steerboard_workers.stages.rows.tournament import tournament

        scores, held, _ = tournament(
            stage,
            "judge",
            answers,
            opponents=config.opponents,
            seed=config.seed,
            precision=config.precision,
            batch_tokens=config.batch_tokens,
        )
    else:
        scores = weighted_rewards(answers, config.scale)
    return ScoredAnswers(**vars(answers), scores=scores - config.penalty * answers.characters), held


def _rewards(result: SelectionResult) -> dict[str, float | None]:
    """Raw, so that selections from different answers can be compared: z-scores of each are around 0."""
    if len(result.rewards) != 1:
        return {}
    return {"reward_mean": result.rewards[0].mean.value, "reward_best": result.rewards[0].best.value}


def _choice(answers: ScoredAnswers, rows: list[int], min_margin: float) -> Choice:
    return choose([answers.scores[row] for row in rows], [answers.texts[row] for row in rows], min_margin)


def _counted(dropped: Counter[str]) -> str:
    words = {"single": "with one answer", "equal_texts": "of equal texts", "tied": "tied"}
    return ", ".join(f"{number} {words[why]}" for why, number in sorted(dropped.items()))


def _write(stage: Stage, config: SelectConfig, answers: ScoredAnswers, choices: list[Choice]) -> int:
    """Writes what is kept; the number of rows."""
    with stage.output_file("selected.jsonl") as path, path.open("w", encoding="utf-8") as file:
        written = 0
        kept = _pairs if config.keep == "best_and_worst" else _answers
        for row in kept(stage, config, answers, choices):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            written += 1
            stage.progress(written, written, "rows", "writing")
    return written


def _answers(stage: Stage, config: SelectConfig, answers: ScoredAnswers, choices: list[Choice]) -> Iterator[Row]:
    """Single answers, in the order of their rows: the best of each group with its score, or all with their labels."""
    labels: dict[int, float] = {}
    for rows, choice in zip(answers.groups, choices, strict=True):
        if choice.dropped:
            continue
        mean = float(answers.scores[rows].mean()) if config.relative else 0.0
        for number in rows if config.keep == "all" else [rows[choice.best]]:
            labels[number] = float(answers.scores[number]) - mean
    name = "reward" if config.keep == "all" else _SCORE
    for place, row in enumerate(stage.rows(answers.first)):
        if place in labels:
            yield {
                "prompt": row["prompt"],
                "response": row["response"],
                "source": row.get("source") or "selected",
                "group": row["group"],
                "candidate": row["candidate"],
                name: labels[place],
            }


def _pairs(stage: Stage, config: SelectConfig, answers: ScoredAnswers, choices: list[Choice]) -> Iterator[Row]:
    """Best and worst of each group, and those next to them, in the order in which pairs are complete. The margin is
    that of their scores."""
    of_row: dict[int, tuple[int, int]] = {}
    for rows, choice in zip(answers.groups, choices, strict=True):
        if choice.dropped:
            continue
        scores, texts = [answers.scores[row] for row in rows], [answers.texts[row] for row in rows]
        for better, worse in nested_pairs(scores, texts, config.pairs, config.min_margin):
            pair = rows[better], rows[worse]
            of_row |= dict.fromkeys(pair, pair)
    waiting: dict[tuple[int, int], tuple[int, Response]] = {}
    for place, row in enumerate(stage.rows(answers.first)):
        pair = of_row.get(place, (-1, -1))
        if place not in pair:
            continue
        if pair not in waiting:
            waiting[pair] = place, row["response"]
            continue
        first, text = waiting.pop(pair)
        chosen, rejected = (text, row["response"]) if first == pair[0] else (row["response"], text)
        yield {
            "prompt": row["prompt"],
            "chosen": chosen,
            "rejected": rejected,
            "margin": float(answers.scores[pair[0]] - answers.scores[pair[1]]),
            "source": row.get("source") or "selected",
            "group": row["group"],
        }


def _result(
    stage: Stage,
    config: SelectConfig,
    answers: ScoredAnswers,
    choices: list[Choice],
    dropped: DroppedGroups,
    rows: int,
    held: Tournament | None,
) -> SelectionResult:
    several = [rows for rows in answers.groups if len(rows) > 1]
    names = [f"reward.{number}" for number in range(len(answers.rewards))]
    values = dict(zip(names, answers.rewards, strict=True))
    groups = AnswerGroups(
        several, answers.scores, answers.texts, {**values, _SCORE: answers.scores, _CHARACTERS: answers.characters}
    )
    datasets = [stage.dataset(slot).name for slot in answers.slots]
    known = zip(answers.normalisers, datasets, strict=True)
    sources = [normaliser.reward_source if normaliser else dataset for normaliser, dataset in known]
    curve, curve_groups = groups.curve(names, _CHARACTERS)
    return SelectionResult(
        keep=config.keep,
        scale="probability" if held else config.scale,
        penalty=config.penalty,
        groups=len(choices),
        answers=len(answers.scores),
        kept_groups=len(choices) - dropped.total,
        rows=rows,
        dropped=dropped,
        mean=groups.mean(_SCORE),
        best=groups.best(_SCORE),
        unique_texts=groups.unique_texts(),
        length_gap=groups.gap(_CHARACTERS),
        rewards=[
            SelectedReward(
                dataset=dataset,
                source=source,
                weight=weight,
                mean=groups.mean(name),
                best=groups.best(name),
            )
            for dataset, source, weight, name in zip(datasets, sources, answers.weights, names, strict=True)
        ],
        correlations=groups.correlations(names, sources) if len(names) > 1 else None,
        tournament=held,
        margins=groups.margins(),
        curve=curve,
        curve_groups=curve_groups,
    )

"""The evaluate stage: entrants answer the held-out prompts, reward models judge, and the report comes out.

Read top to bottom: choose prompts, answer, judge, write.
"""

from __future__ import annotations

from typing import Any

from steerboard_contracts.configs import EvaluateConfig
from steerboard_contracts.errors import BadInput
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.report import Report
from steerboard_contracts.stage import ReportOutput, Succeeded
from steerboard_workers.stages.evaluation.answers import Entry, answer_all, entries_of, held_out_prompts
from steerboard_workers.stages.evaluation.judging import Labelled, judge
from steerboard_workers.stages.evaluation.table import Findings, report
from steerboard_workers.stages.runtime import Stage


def run(stage: Stage) -> Succeeded:
    config = stage.spec.config
    assert isinstance(config, EvaluateConfig)
    prompts = held_out_prompts(stage, config.prompts, config.seed)
    entries = entries_of(stage, config)
    labelled = Labelled(stage, config.seed) if stage.has_input("labelled") else None
    judges = stage.input_names("rewards")
    if not judges:
        raise BadInput("an evaluation needs a reward model", code="missing_input")

    answer_all(stage, config, entries, prompts)
    foreign = labelled is not None and not labelled.is_by(stage.model(judges[0]).content_hash)
    main = judge(stage, judges[0], config, entries, prompts, labelled.sample if labelled and foreign else ())
    independent = None
    if len(judges) > 1:
        independent = judge(stage, judges[1], config, entries, prompts, labelled.sample if labelled else ())
    if labelled and not foreign:
        normaliser, rewards = labelled.normaliser, labelled.rewards
    else:
        normaliser, rewards = main.normaliser or _recorded(entries), main.labelled
    document = report(config, Findings(prompts, entries, main, independent, normaliser, rewards or None))
    if labelled and foreign:
        document.warnings.append(
            f"The labelled rewards are those of {labelled.normaliser.reward_source}, not of the reward model that "
            f"judges here: z units and percentiles are by its own rewards of {len(main.labelled)} labelled rows."
        )

    for warning in document.warnings:
        stage.log(warning, "warning")
    with stage.output_file("report.json") as path:
        path.write_text(document.model_dump_json(indent=2), encoding="utf-8")
    return Succeeded(outputs=[ReportOutput(path=stage.output_path("report.json"))], summary=_summary(document))


def _recorded(entries: list[Entry]) -> Normaliser:
    """Without labelled data, z units are those that a policy was trained with."""
    for entry in entries:
        if entry.info.normaliser is not None:
            return entry.info.normaliser
    raise BadInput(
        "rewards cannot be normalised: no labelled dataset is given, and no entrant was trained on one",
        code="missing_input",
        hint="Give the evaluation its labelled dataset.",
    )


def _summary(document: Report) -> dict[str, Any]:
    best = max(document.methods, key=lambda row: row.reward_mean)
    at = "" if best.score is None else f" at {best.score:g}"
    return {
        "prompts": document.prompts,
        "best": f"{best.entrant}{at}",
        "best_reward": best.reward_mean,
        "held_out_accuracy": document.reward_model.held_out_accuracy,
        "spearman": document.control.spearman if document.control else None,
    }

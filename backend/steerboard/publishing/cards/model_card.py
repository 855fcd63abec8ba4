"""The card of a model: what it is, how it is asked, what made it, how good it is, and where that ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steerboard.datasets.tables import Dataset
from steerboard.publishing.cards.facts import ModelFacts
from steerboard.publishing.cards.markdown import TAG, code, front_matter, sections, table
from steerboard.publishing.cards.origins import hub_dataset, origin_words
from steerboard.runs.tables import Run
from steerboard_contracts.attribute_names import SCORE
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.models import POLICIES, SCALARS
from steerboard_contracts.run_kinds import any_kind_of
from steerboard_contracts.wording import counted, listed

_FIGURES = 40
# The settings of a training run that people compare first; defaults are among them.
_SETTINGS = ("lr", "batch", "epochs", "max_steps", "max_length", "seed", "beta", "lora", "score_scale", "dropout")
_ROLES: dict[str, str] = dict(  # noqa: C408  by keyword: one is also the name of a method
    base="a base model",
    sft="an instruction-tuned model",
    policy="a policy",
    reward="a reward model, which gives an answer one number",
    preference="a preference model, which decides which of two answers is better",
    critic="a critic, which predicts rewards",
)


def model_card(facts: ModelFacts, repo: str, weights: str, base: str | None, licence: str | None) -> str:
    """`base`: of an adapter, the hub name of the model below it. `licence`: as the one who pushes gives it."""
    model, info = facts.model, facts.info
    head: dict[str, Any] = {
        "license": licence,
        "library_name": "peft" if weights == "adapter" and info.lora else "transformers",
        "pipeline_tag": "text-classification" if info.role in SCALARS else "text-generation",
        "datasets": sorted({name for data in facts.ancestry.datasets if (name := hub_dataset(data))}),
        "tags": [TAG, "rlhf", info.role, *([model.method.replace("_", "-")] if model.method else [])],
    }
    below = (base or "").partition("@")[0] or (facts.hub_base.name if facts.hub_base else "")
    if below and below != repo:
        adapter = weights == "adapter" and info.lora is not None
        head |= {"base_model": below, "base_model_relation": "adapter" if adapter else "finetune"}
    parts = [
        ("How to ask for a score", _asking(facts)),
        ("Methods", _methods(facts)),
        ("Data", _data(facts.ancestry.datasets)),
        ("Figures", _figures(facts)),
        ("Costs", _costs(facts)),
        ("Licence", _licence(facts, licence)),
        ("Limits", _limits(facts)),
    ]
    return f"{front_matter(head)}\n# {model.name}\n\n{_what(facts, weights)}\n{sections(parts)}"


def _what(facts: ModelFacts, weights: str) -> str:
    model, info = facts.model, facts.info
    kind = any_kind_of("train", model.method) if model.method else None
    by = f", trained by {kind.title}" if kind is not None else ""
    of = f" from {code(str(facts.hub_base))}" if facts.hub_base and facts.base is not model else ""
    if not of and facts.base is not None and facts.base is not model:
        of = f" from {code(facts.base.name)} ({facts.base.info.get('lineage', {}).get('source', 'imported')})"
    form = ""
    if info.lora is not None:
        form = (
            f" These are LoRA weights of rank {info.lora.rank} for that model."
            if weights == "adapter"
            else f" A LoRA adapter of rank {info.lora.rank} was merged into these weights."
        )
    return (
        f"{code(model.name)} is {_ROLES[info.role]}{by}{of}: {info.architecture}, {info.parameters:,} parameters, at "
        f"most {info.max_length:,} tokens.{form} Steerboard trained and measured it; {code('steerboard.json')} next to "
        f"this card has its description for programs. Content hash: {code(model.artifact_hash)}."
    )


def _asking(facts: ModelFacts) -> str:
    form, info = facts.info.condition, facts.info
    if form is None:
        return "" if info.role not in POLICIES else "It takes no score. Ask it through its chat template."
    argument = "rm_score" if form.only_score else "condition"
    highest = Condition.of({attribute.name: attribute.high for attribute in form.attributes})
    shown = form.text(form.default) or form.text(highest)
    lines = []
    for attribute in form.attributes:
        name = f"`<{SCORE}>`, the score" if attribute.name == SCORE else code(attribute.name)
        usual = "left out unless asked for" if attribute.default is None else f"{attribute.default:g} unless asked"
        lines.append(f"- {name}: {attribute.low:g} to {attribute.high:g} in steps of {attribute.step:g}; {usual}.")
    if facts.seen is not None:
        low, high, p20, p80 = facts.seen
        lines.append(
            f"- Seen in training: {low:.2f} to {high:.2f}; the middle 60% of the rows {p20:.2f} to {p80:.2f}. Outside "
            "of that the model extrapolates."
        )
    if info.normaliser is not None:
        by = info.normaliser
        lines.append(
            f"- A score of 0 is the mean reward of the training data by {code(by.reward_source)} ({by.mean:.4g}; one "
            f"standard deviation is {by.sd:.4g}, over {by.n:,} rows)."
            if info.score_scale is None or info.score_scale.kind == "zscore"
            else f"- Scores are on a {info.score_scale.kind} scale of the rewards by {code(by.reward_source)}."
        )
    style = form.how.style
    if style != "digits":
        signs = ", ".join(code(sign) for sign in form.how.signs)
        lines.append(f"- The prompt has it in {style}, from lowest to highest: {signs}.")
    where = {
        "answer": "opens the answer",
        "request": "ends the request",
        "both": "ends the request and opens the answer",
    }
    lines.append(f"- In the prompt it {where.get(form.how.place, 'opens the answer')}.")
    call = f"apply_chat_template(messages, {argument}={shown!r}, add_generation_prompt=True)"
    return (
        f"The chat template writes it: `{call}`. A server of vLLM takes it as `chat_template_kwargs`. The empty text "
        "asks for nothing.\n\n" + "\n".join(lines)
    )


def _methods(facts: ModelFacts) -> str:
    trained = [run for run in facts.ancestry.runs if run.kind == "train"]
    rows = [(code(run.name), _title(run), _settings(run)) for run in trained]
    other = sorted({_title(run) for run in facts.ancestry.runs if run.kind != "train"})
    text = table(("Stage", "Method", "Settings"), rows) if rows else "It was not trained here."
    return text + (f"\n\nAround them: {listed(other)}." if other else "")


def _title(run: Run) -> str:
    kind = any_kind_of(run.kind, run.method)
    return kind.title if kind is not None else (run.method or run.kind)


def _settings(run: Run) -> str:
    shown = []
    for name in _SETTINGS:
        value = run.config.get(name)
        if isinstance(value, dict):
            value = value.get("rank")
            name = f"{name} rank"
        if value is not None and not isinstance(value, list | dict):
            shown.append(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}")
    return ", ".join(shown)


def _data(datasets: list[Dataset]) -> str:
    if not datasets:
        return ""
    rows = [
        (
            code(data.name),
            data.kind,
            f"{data.rows:,}",
            f"{data.held_out_rows:,}",
            origin_words(data),
            code(data.content_hash[:16]),
        )
        for data in datasets
    ]
    return table(("Dataset", "Kind", "Rows", "Held out", "From", "Content hash"), rows)


def _figures(facts: ModelFacts) -> str:
    return "\n\n".join(_evaluated_parts(facts)) or "No evaluation of it has a report."


def _evaluated_parts(facts: ModelFacts) -> Iterator[str]:
    for row in facts.evaluations:
        rows = [
            (
                "" if figure.condition is None else str(figure.condition),
                f"{figure.what} by {figure.by}",
                figure.estimate.in_words(_three, none="unknown"),
                figure.estimate.n,
            )
            for figure in row.figures[:_FIGURES]
        ]
        so_far = "" if row.finished else " It was not finished."
        against = f" Win rates are against {code(row.baseline)}." if row.baseline else ""
        prompts = counted(row.prompts, "prompt") + (f" ({row.prompts_from})" if row.prompts_from else "")
        yield (
            f"Evaluation {code(row.name)} on {prompts}, computed {row.computed_at:%Y-%m-%d}. Brackets hold 95% "
            f"intervals.{against}{so_far}\n\n" + table(("Asked for", "Figure", "Value", "n"), rows)
        )
    if facts.academic:
        measured = [
            (
                code(row.task.task),
                figure.name,
                f"{figure.value:.3f}{figure.interval.ends(_three) if figure.interval else ''}",
                f"{row.task.items:,} of {row.task.of:,}",
                f"lm-evaluation-harness {row.harness}, {row.ended_at:%Y-%m-%d}",
            )
            for row in facts.academic
            for figure in row.task.figures
        ]
        yield table(("Benchmark", "Figure", "Value", "Items", "Source"), measured[:_FIGURES])


def _three(value: float) -> str:
    return f"{value:.3f}"


def _costs(facts: ModelFacts) -> str:
    costs = facts.costs
    if not facts.ancestry.runs:
        return ""
    phases = ", ".join(f"{cost.phase} {_hours(cost.device_seconds)}" for cost in costs.phases if cost.device_seconds)
    on = f" on {listed(facts.devices)}" if facts.devices else ""
    runs = counted(len(facts.ancestry.runs), "run")
    lines = [f"{_hours(costs.device_seconds)} device-hours{on} for all {runs} that went into it."]
    if phases:
        lines.append(f"By phase: {phases}.")
    if costs.failed_attempts:
        failed = counted(costs.failed_attempts, "attempt")
        lines.append(f"{failed} that failed took another {_hours(costs.failed_device_seconds)}.")
    return " ".join(lines)


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.3f}"


def _licence(facts: ModelFacts, licence: str | None) -> str:
    lines = [f"- These weights: {licence or 'not stated by those who pushed them'}."]
    if facts.base is not None:
        lineage = facts.base.info.get("lineage", {})
        where = code(str(facts.hub_base)) if facts.hub_base else code(facts.base.name)
        lines.append(f"- Base model {where}: {lineage.get('licence') or 'not recorded; ask its makers'}.")
    names = sorted({name for data in facts.ancestry.datasets if (name := hub_dataset(data))})
    for name in names:
        lines.append(f"- Data {code(name)}: see its page on the hub.")
    brought = [data for data in facts.ancestry.datasets if data.origin.get("file") and not hub_dataset(data)]
    if brought:
        lines.append(f"- Imported files, licence not recorded: {listed(code(data.name) for data in brought[:10])}.")
    return "\n".join(lines)


def _limits(facts: ModelFacts) -> str:
    lines = []
    if facts.info.condition is not None:
        lines.append("A higher score asks for what the reward model prefers, which is not the same as a better answer.")
    if facts.info.role in ("reward", "preference", "critic"):
        lines.append("It has learned from its data alone; on other topics and lengths its judgment is untested.")
    if facts.evaluations:
        lines.append("The figures hold for the prompts named above; other prompts may give others.")
    else:
        lines.append("It was not measured against other models in this project.")
    warned = list(
        dict.fromkeys(
            [warning for evaluated in facts.evaluations for warning in evaluated.warnings]
            + [f"run {run.name}: {warning['message']}" for run in facts.ancestry.runs for warning in run.warnings]
        )
    )
    lines += warned[:10]
    if facts.ancestry.truncated:
        lines.append("More went into it than this card lists.")
    lines.append("No filter for harmful content is part of it.")
    return "\n".join(f"- {line}" for line in lines)

"""Reports to print."""

from __future__ import annotations

from steerboard_contracts.report.kept import read_report
from steerboard_contracts.report.pipeline import MethodRow, PipelineReport, StageRow
from steerboard_contracts.report.sections.headline import Headline, Reservation
from steerboard_contracts.report.sections.recipe import Control, Example, LabelledRewards, RewardModelSummary

SCORES = [-5.0, -2.5, 0.0, 2.5, 5.0]
ACHIEVED = [-1.6, -0.9, 0.1, 0.8, 1.2]


def row(
    method: str, reward: float, half_width: float = 0.05, score: float | None = None, best_of: int | None = None
) -> MethodRow:
    return MethodRow(
        method=method,
        best_of=best_of,
        entrant=f"demo-1.{method}",
        score=score,
        n=100,
        reward_mean=reward,
        reward_low=reward - half_width,
        reward_high=reward + half_width,
        length_mean=44.4,
        truncated=0.0,
        distinct_1=0.3,
        distinct_2=0.5,
        win_rate_vs_baseline=None if method == "sft" else 0.75,
        independent_win_rate_vs_baseline=None if method == "sft" else 0.5,
        quality_mean=0.6,
        quality_low=0.5,
        quality_high=0.7,
        device_seconds=20.0,
        name=method if score is None else f"{method}_{score:g}",
        own_device_seconds=5.0,
        total_device_seconds=20.0,
    )


def report(rows: list[MethodRow], **changes: object) -> PipelineReport:
    sample = PipelineReport(
        stages=[StageRow(name="sft", status="succeeded", seconds=12.3, device_seconds=11.9)],
        methods=rows,
        reward_model=RewardModelSummary(
            name="reward",
            held_out_accuracy=0.912,
            pairs=123,
            independent_name="other",
            independent_held_out_accuracy=0.9,
            independent_pairs=120,
        ),
        control=Control(requested=SCORES, achieved=ACHIEVED, spearman=1.0),
        labelled_rewards=LabelledRewards(p20=-1.0, p50=0.1, p80=0.9, n=1000),
        prompts=100,
    )
    return sample.model_copy(update=changes)


def clear_win() -> PipelineReport:
    conditioned = [row("decision_transformer", a, score=s) for s, a in zip(SCORES, ACHIEVED, strict=True)]
    headline = Headline(
        text="decision_transformer_5 wins: against mle_filter, the closest of 7 rivals, its win rate is 75.0%.",
        winner="decision_transformer_5",
        by="reward",
        source="reward",
        reservations=[Reservation(code="circular", text="Reward model reward is circular.")],
    )
    rows = [row("sft", 0.2), row("mle_filter", 0.6), row("rwr", 0.3), *conditioned]
    return report(rows, headline=headline)


def with_examples(synthetic: bool) -> PipelineReport:
    texts = {5.0: "A full answer.", 0.0: "A thin one.", -5.0: "Something else."}
    answers = [{"entrant": "demo-1.dt", "score": score, "text": text} for score, text in texts.items()]
    example = Example(prompt="How do tomatoes grow?", answers=answers)
    return clear_win().model_copy(update={"examples": [example], "quality": "synthetic" if synthetic else None})


def kept(report: PipelineReport) -> PipelineReport:
    """The report as it is read from what a stage of an earlier version kept."""
    return read_report(report.model_dump(mode="json"))

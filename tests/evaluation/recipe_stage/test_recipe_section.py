"""What a recipe's stage keeps: the claims, the rows for scripts, and what it warns of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from steerboard.evaluation.recipe_stage.findings import Findings
from steerboard.evaluation.recipe_stage.names import entrant_names
from steerboard.evaluation.recipe_stage.section import with_recipe
from steerboard.evaluation.report.assembly import assemble
from steerboard.evaluation.report.data import Answers, EntrantFacts, EvaluationData, PromptFacts, RewardFacts, TextFacts
from steerboard.platform.database import new_id
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.known_quality import KNOWN_QUALITY, KnownQuality
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.prompts import Normaliser, ScoreScale
from steerboard_contracts.report.flat import flat, label
from steerboard_contracts.report.pipeline import PipelineReport
from steerboard_contracts.run_kinds.evaluate import Entrant, EvaluateConfig
from steerboard_contracts.stage.outputs import RewardPercentiles, RewardSummary

BY_REWARD = Normaliser(mean=1.0, sd=2.0, n=100, reward_source="reward", reward_model_hash="r")
LABELLED = RewardPercentiles(n=100, p0_1=-5.0, p20=-1.0, p50=1.0, p80=3.0, p99_9=7.0)
PROMPTS = ("One?", "Two?")


@dataclass(frozen=True)
class Entry:
    """An entrant with its answers to both prompts."""

    who: EntrantFacts
    info: ModelInfo | None = None
    texts: tuple[str, str] = ("a b", "a c")
    tokens: tuple[int, int] = (2, 4)
    finished: tuple[bool, bool] = (True, True)


def entry(name: str, method: str = "sft", score: float | str | None = None, **given: Any) -> Entry:
    finished = given.pop("finished", (True, True))
    guidance, info = given.pop("guidance", 1.0), given.pop("info", None)
    fields: dict[str, Any] = {"model": f"p-1.{name}", "best_of": None, "chosen_by": None, "samples": 1, **given}
    who = EntrantFacts(
        id=new_id(),
        name=name,
        source="model",
        method=method,
        family=None,
        score=None if score is None else Condition.model_validate(score),
        content_hash=name,
        known_origin=True,
        trained_on=fields.pop("trained_on", frozenset()),
        decoding={"guidance": guidance},
        **fields,
    )
    return Entry(who, info, finished=finished)


def scores(
    *rewards: list[float], normaliser: Normaliser | None = BY_REWARD, name: str = "reward", **summary: Any
) -> RewardFacts:
    """The facts of reward model `name`, whose hash is its first letter; `rewards` are by entrant."""
    entrants, prompts = np.indices((len(rewards), len(PROMPTS))).reshape(2, -1)
    return RewardFacts(
        id=new_id(),
        name=name,
        content_hash=name[0],
        state="succeeded",
        normaliser=normaliser,
        summary=RewardSummary(**summary).model_dump(mode="json"),
        row=prompts,
        entrant=entrants,
        sample=np.zeros_like(prompts),
        values=np.array(rewards, dtype=float).ravel(),
        benchmarks=[],
        held_out_changes=[],
    )


def made(
    entries: list[Entry],
    main: RewardFacts,
    independent: RewardFacts | None = None,
    by: KnownQuality | None = None,
    quality: list[list[float]] | None = None,
    **given: Any,
) -> PipelineReport:
    known = [] if quality is None else [scores(*quality, normaliser=None, name=KNOWN_QUALITY)]
    models = [main] if independent is None else [main, independent]
    entrants, prompts = np.indices((len(entries), len(PROMPTS))).reshape(2, -1)
    unknown = np.full(len(prompts), np.nan)
    data = EvaluationData(
        id=new_id(),
        name="e",
        version=1,
        seed=0,
        checked=[],
        unfinished=[],
        prompts_from="",
        prompts=[PromptFacts(place, str(place), None, 1, None) for place in range(len(PROMPTS))],
        entrants=[entry.who for entry in entries],
        answers=Answers(
            row=prompts,
            entrant=entrants,
            sample=np.zeros_like(prompts),
            characters=np.array([[len(text)] for entry in entries for text in entry.texts]),
            truncated=np.array([float(not finished) for entry in entries for finished in entry.finished]),
            tokens=np.array([float(tokens) for entry in entries for tokens in entry.tokens]),
            log_ratio=unknown,
            log_prob=unknown,
            log_prob_tokens=unknown,
        ),
        texts=[TextFacts(answers=2) for _ in entries],
        rewards=[*models, *known],
    )
    shown = {row: (prompt, {entry.who.id: entry.texts[row] for entry in entries}) for row, prompt in enumerate(PROMPTS)}
    findings = Findings(
        data=data,
        report=assemble(data).report,
        entrants=len(entries),
        rewards=len(models),
        models={entry.who.id: entry.info for entry in entries if entry.info is not None},
        shown=shown,
        **given,
    )
    return flat(with_recipe(EvaluateConfig(entrants=[{} for _ in entries], quality=by), findings))


def dt(kind: str) -> ModelInfo:
    knots = [(-5.0, -5.0), (7.0, 5.0)] if kind == "quantile" else []
    scale = ScoreScale(kind=kind, normaliser=BY_REWARD, limit=50.0, knots=knots)
    common = {"architecture": "LlamaForCausalLM", "parameters": 1, "max_length": 64}
    return ModelInfo(role="policy", condition=ConditionFormat.of_score(), score_scale=scale, **common)


def test_rewards_and_percentiles_are_in_the_units_of_the_first_reward_model() -> None:
    own = Normaliser(mean=0.0, sd=10.0, n=100, reward_source="independent", reward_model_hash="i")
    section = made(
        [entry("sft"), entry("mle", "mle_filter")],
        scores([1.0, 3.0], [5.0, 5.0], labelled=LABELLED, normalised_by="p-1.labelled", pairs=10, correct=7.5),
        scores([10.0, 20.0], [20.0, 10.0], normaliser=own, name="independent", pairs=8, correct=6.0),
    )
    assert [row.reward_mean for row in section.methods] == [0.5, 2.0]
    # As in the evaluation: two prompts have no interval.
    assert [(row.reward_low, row.reward_high) for row in section.methods] == [(None, None)] * 2
    assert [row.independent_reward_mean for row in section.methods] == [1.5, 1.5]
    assert [row.win_rate_vs_baseline for row in section.methods] == [None, 1.0]
    assert [row.independent_win_rate_vs_baseline for row in section.methods] == [None, 0.5]
    assert (section.units, section.units_of) == ("z", "the labelled data")
    percentiles = section.labelled_rewards
    assert percentiles is not None
    assert (percentiles.p20, percentiles.p50, percentiles.p80, percentiles.n) == (-1.0, 0.0, 1.0, 100)
    judged = section.reward_model
    assert (judged.held_out_accuracy, judged.pairs) == (0.75, 10)
    assert (judged.independent_held_out_accuracy, judged.independent_pairs) == (0.75, 8)
    assert section.methods[0].length_mean == 3.0


def test_z_units_of_held_out_pairs_are_called_so_and_without_a_normaliser_rewards_are_raw() -> None:
    pairs = made([entry("sft")], scores([1.0, 3.0], normalised_by="the held-out pairs of hh"))
    assert (pairs.units, pairs.units_of, pairs.methods[0].reward_mean) == ("z", "the held-out pairs of hh", 0.5)
    assert not any("raw" in warning for warning in pairs.warnings)
    raw = made([entry("sft")], scores([1.0, 3.0], normaliser=None))
    assert (raw.units, raw.units_of, raw.methods[0].reward_mean) == ("raw", None, 2.0)
    assert any("Rewards are raw" in warning for warning in raw.warnings)


def test_entrants_of_one_method_are_told_apart_by_their_stage() -> None:
    entries = [entry("sft"), entry("dt-1_5", "dt", 5.0), entry("dt-1_0", "dt", 0.0), entry("dt-2_5", "dt", 5.0)]
    one, other = "p-1.dt-1", "p-1.dt-2"
    entries = [
        replace(one_of, who=replace(one_of.who, model=model))
        for one_of, model in zip(entries, ("p-1.sft", one, one, other), strict=True)
    ]
    section = made(entries, scores(*[[1.0, 2.0]] * 4))
    assert [row.variant for row in section.methods] == [None, "dt-1", "dt-1", "dt-2"]
    assert label(section.methods[3]).endswith(" (dt-2) at 5.0")
    assert [row.variant for row in made(entries[:3], scores(*[[1.0, 2.0]] * 3)).methods] == [None, None, None]


def test_without_sft_the_base_model_is_what_others_are_compared_with() -> None:
    entries = [entry("dpo", "rwr"), entry("base", "base")]
    section = made(entries, scores([2.0, 2.0], [1.0, 3.0]), by="sentiment", quality=[[2.0, 5.0], [1.0, 3.0]])
    assert [row.win_rate_vs_baseline for row in section.methods] == [0.5, None]
    gain = section.methods[0].quality_gain
    assert gain is not None
    assert (gain.value, gain.low, gain.n) == (1.5, None, 2)
    assert section.methods[1].quality_gain is None
    # Without either it is the first entrant, as in the evaluation.
    none = made([entry("dpo", "rwr"), entry("kto", "rwr")], scores([2.0, 2.0], [1.0, 3.0]))
    assert [row.win_rate_vs_baseline for row in none.methods] == [None, 0.5]
    assert none.baseline == "RWR (dpo)"


def test_the_control_curve_holds_the_means_in_order_of_the_score() -> None:
    entries = [entry("sft")] + [
        entry(f"dt_{score:g}", "decision_transformer", score, model="p-1.dt") for score in (5.0, -5.0, 0.0)
    ]
    section = made(entries, scores([1.0, 1.0], [7.0, 7.0], [-3.0, -3.0], [9.0, 9.0]))
    assert section.control is not None
    assert (section.control.requested, section.control.achieved) == ([-5.0, 0.0, 5.0], [-2.0, 4.0, 3.0])
    assert section.control.spearman == pytest.approx(0.5)


def test_the_control_curve_is_along_the_one_attribute_that_differs() -> None:
    asked = ("helpfulness:4,verbosity:1", "helpfulness:0,verbosity:1", "helpfulness:2,verbosity:1")
    entries = [entry(f"s_{condition}", "toy", condition, model="p-1.s") for condition in asked]
    control = made(entries, scores([9.0, 9.0], [1.0, 1.0], [5.0, 5.0])).control
    assert control is not None
    assert control.requested == [0.0, 2.0, 4.0]
    assert control.spearman == pytest.approx(1.0)
    several = [
        entry(f"s_{condition}", "toy", condition, model="p-1.s") for condition in ("helpfulness:4", "verbosity:1")
    ]
    assert made(several, scores([9.0, 9.0], [1.0, 1.0])).control is None


@pytest.mark.parametrize("kind", ["zscore", "quantile"])
def test_zscores_beyond_the_labelled_data_are_warned_about_and_quantiles_are_not(kind: str) -> None:
    entries = [entry("dt_5", "decision_transformer", 5.0, info=dt(kind))]
    section = made(entries, scores([1.0, 1.0], labelled=LABELLED))
    assert any("99.9th percentile (3.00)" in warning for warning in section.warnings) == (kind == "zscore")


def test_few_prompts_cut_answers_and_scores_written_otherwise_are_warned_about() -> None:
    entries = [entry("dt_50", "decision_transformer", 50.0, info=dt("quantile"), finished=[True, False])]
    warnings = made(entries, scores([1.0, 1.0])).warnings
    assert "Only 2 held-out prompts: the intervals are wide and may not hold." in warnings
    assert "dt_50: score 50 is written as 5.00." in warnings
    assert "The token limit cut answers of dt_50 (50%)." in warnings


def test_without_an_independent_reward_model_those_that_learned_from_the_judge_are_named() -> None:
    main = scores([1.0, 1.0], [2.0, 2.0], name="rm")
    named = "No independent reward model: the win rates are by rm, from which dt learned, or which chose their answers."
    taught = [entry("sft"), entry("dt", trained_on=frozenset("r"))]
    section = made(taught, main)
    assert named in section.warnings
    assert section.reward_model.independent_name is None
    watched = made(taught, main, replace(main, name="other", content_hash="o"))
    assert not any("No independent" in warning for warning in watched.warnings)
    assert watched.reward_model.independent_name == "other"
    # Nothing learned from the one that judges.
    assert not any("No independent" in warning for warning in made([entry("sft"), entry("dt")], main).warnings)


def test_grades_of_somebody_else_are_named() -> None:
    section = made([entry("sft")], scores([1.0, 1.0], labelled=LABELLED), graded_by="graded-hh")
    assert any("those of graded-hh, not of the reward model that judges here" in w for w in section.warnings)


def test_a_sum_of_rewards_is_named_and_its_scores_are_not_compared_with_one_rewards_percentiles() -> None:
    info = dt("zscore")
    assert info.score_scale is not None
    info.score_scale.normaliser = BY_REWARD.model_copy(update={"parts": [BY_REWARD.part(1.0), BY_REWARD.part(0.5)]})
    entries = [entry("dt_5", "decision_transformer", 5.0, info=info)]
    warnings = made(entries, scores([1.0, 1.0], labelled=LABELLED), graded_by="p-1.both", summed=2).warnings
    assert any("those of p-1.both, a sum of 2 rewards" in warning for warning in warnings)
    assert not any("percentile" in warning for warning in warnings)


def test_each_guidance_has_a_row_of_its_own_and_the_control_is_of_one() -> None:
    asked = [(score, guidance) for guidance in (1.0, 3.0) for score in (-5.0, 5.0)]
    names = [f"dt_{score:g}" + ("" if w == 1 else f"_w{w:g}") for score, w in asked]
    entries = [
        entry(name, "decision_transformer", score, guidance=w, model="dt")
        for name, (score, w) in zip(names, asked, strict=True)
    ]
    section = made(entries, scores([1.0, 1.0], [2.0, 2.0], [0.0, 0.0], [4.0, 4.0]))
    assert [row.variant for row in section.methods] == [None, None, "guidance 3", "guidance 3"]
    assert section.control is not None
    assert section.control.requested == [-5, 5]


def test_the_quality_of_synthetic_answers_makes_the_report_synthetic_and_that_of_others_does_not() -> None:
    known: dict[str, Any] = {"quality": [[0.2, 0.4]]}
    section = made([entry("sft")], scores([1.0, 1.0]), by="synthetic", **known)
    assert (section.synthetic, section.quality, section.methods[0].quality_mean) == (
        True,
        "synthetic",
        pytest.approx(0.3),
    )
    section = made([entry("sft")], scores([1.0, 1.0]), by="sentiment", **known)
    assert (section.synthetic, section.quality) == (False, "sentiment")
    assert not made([entry("sft")], scores([1.0, 1.0])).synthetic


def test_entrants_are_called_after_their_stage_and_score() -> None:
    asked = [
        Condition.model_validate(condition) for condition in (-5.0, 0.0, 2.5, 2.5, "helpfulness:4,verbosity:0.5", "")
    ]
    names = entrant_names(
        [
            ("sft", Entrant()),
            ("dt", Entrant(scores=asked)),
            ("dt", Entrant()),
            ("sft", Entrant()),
            ("sft", Entrant(best_of=8)),
            ("dt", Entrant(scores=asked[:1], best_of=8)),
            ("sft", Entrant(samples=8)),
            ("dt", Entrant(scores=asked[:2], guidance=2.5)),
        ]
    )
    assert [[(name, None if score is None else score.plain()) for name, score in rows] for rows in names] == [
        [("sft", None)],
        [
            *(("dt_-5", -5.0), ("dt_0", 0.0), ("dt_2.5", 2.5)),
            *(("dt_helpfulness4_verbosity0.5", "helpfulness:4,verbosity:0.5"), ("dt_nothing", "")),
        ],
        [("dt", None)],
        [("sft-2", None)],
        [("sft_best_of_8", None)],
        [("dt_-5_best_of_8", -5.0)],
        [("sft_8_samples", None)],
        [("dt_-5_w2.5", -5.0), ("dt_0_w2.5", 0.0)],
    ]

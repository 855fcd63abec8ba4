"""Decision Transformer: Eq. 6 of arXiv 2308.12050, SFT behind `<rm_score> a.b`; with other attributes than the score,
the attribute-conditioned SFT of SteerLM (arXiv 2310.05344, step 3), behind `helpfulness:4,verbosity:2`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from steerboard_contracts.attribute_names import SCORE
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.methods.decision_transformer import DecisionTransformerConfig
from steerboard_contracts.prompts import Normaliser, ScoreScale
from steerboard_workers.alignment.attributes import described, fit_attribute, grade
from steerboard_workers.alignment.batches.batch_source import BatchSource, ListSource
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.filtering import NOTHING_LEFT, above
from steerboard_workers.alignment.losses import effective_sample_size
from steerboard_workers.alignment.objectives import LanguageObjective, Objective
from steerboard_workers.alignment.rendering.render import RenderedGroup
from steerboard_workers.alignment.rollouts import SourceContext
from steerboard_workers.alignment.score_balance import ScoreBalance
from steerboard_workers.alignment.training_method import RewardedMethod, Row, Selection, Source


class DecisionTransformer(RewardedMethod[DecisionTransformerConfig]):
    """The scale that turns a reward into a score goes into the model, which is asked by it.

    A row that lacks an attribute is learned from without it, as one that lacks all of them is without a condition.
    Rows need a reward only where the score is among the attributes.
    """

    _balance: ScoreBalance | None = None

    def __init__(self, config: DecisionTransformerConfig) -> None:
        super().__init__(config)
        self._prompts: dict[int, str] = {}

    def select(self, rows: list[Row], source: Source) -> Selection:
        self._dataset = source.name
        if rows and SCORE not in self.config.attributes and any("reward" not in row for row in rows):
            return self._by_attributes(rows)
        return super().select(rows, source)

    def _by_attributes(self, rows: list[Row]) -> Selection:
        """Selects from rows that need no reward, since the policy is not asked for one."""
        defaults = self.config.default_attributes.values
        attributes = [fit_attribute(name, rows, self._dataset, defaults.get(name)) for name in self.config.attributes]
        self.condition_format = ConditionFormat(
            attributes=tuple(attributes), dropped=self.config.drop_score, writing=self.config.writing
        )
        return Selection(
            rows,
            info={"condition": self.condition_format},
            notes=[described(attribute, rows) for attribute in attributes],
        )

    def select_rewarded(self, rows: list[Row], rewards: Sequence[float], normaliser: Normaliser) -> Selection:
        config = self.config
        self._scale = ScoreScale.fit(config.score_scale, rewards, normaliser, config.score_limit)
        score = ConditionFormat.of_score(config.score_limit, config.score_step, config.default_score).attributes[0]
        defaults = config.default_attributes.values
        self.condition_format = ConditionFormat(
            attributes=tuple(
                score if name == SCORE else fit_attribute(name, rows, self._dataset, defaults.get(name))
                for name in config.attributes
            ),
            dropped=config.drop_score,
            writing=config.writing,
        )
        info: dict[str, Any] = {"condition": self.condition_format}
        if SCORE in config.attributes:
            info["score_scale"] = self._scale
        notes = [
            described(attribute, rows) for attribute in self.condition_format.attributes if attribute.name != SCORE
        ]
        # A score means the same whatever is left out: its scale is that of all rows.
        kept = Selection(rows) if config.threshold is None else above(config.threshold, rows)
        if config.balance_scores:
            scores = [self._scale.score(row["reward"]) for row in kept.rows if row["split"] != "held_out"]
            self._balance = ScoreBalance.fit(scores, config.score_limit)
            weights = [self._balance.of(score) for score in scores]
            size = effective_sample_size(weights)
            notes.append(
                f"scores are balanced: weights from {min(weights):.2f} to {max(weights):.2f}, effective {size:.0%}"
            )
        return replace(kept, info=info, notes=[*kept.notes, *notes])

    def example(self, number: int, row: Row, group: RenderedGroup) -> Example:
        if self.config.contrast:
            self._prompts[number] = json.dumps(row["prompt"], sort_keys=True)
        # Held-out rows weigh the same, so that the held-out loss of all runs is one figure.
        if self._balance is None or row["split"] == "held_out":
            return Example.of(number, group)
        return Example.of(number, group, weight=self._balance.of(self._scale.score(row["reward"])))

    def source(self, context: SourceContext) -> BatchSource:
        if not self.config.contrast:
            return super().source(context)
        return ListSource(context.train, context.held_out, self.config, lambda example: self._prompts[example.row])

    @property
    def shares_prompt(self) -> bool:
        """Scores that open the answer leave its prompt the same."""
        return self.config.contrast

    def objective(self) -> Objective:
        return LanguageObjective(weighted=self._balance is not None, floor=self.config.loss_floor)

    def nothing_left(self) -> str:
        return super().nothing_left() if self.config.threshold is None else NOTHING_LEFT

    def asked(self, row: Row) -> Condition:
        values = {name: self._value(row, name) for name in self.config.attributes}
        return Condition.of({name: value for name, value in values.items() if value is not None})

    def _value(self, row: Row, name: str) -> float | None:
        return self._scale.score(row["reward"]) if name == SCORE else grade(row, name)

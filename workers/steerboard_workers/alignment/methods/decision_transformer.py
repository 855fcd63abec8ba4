"""Decision Transformer: Eq. 6 of arXiv 2308.12050, SFT behind `<rm_score> a.b`."""

from __future__ import annotations

from collections.abc import Sequence

from steerboard_contracts.conditions.format import ConditionFormat
from steerboard_contracts.methods.decision_transformer import DecisionTransformerConfig
from steerboard_contracts.prompts import Normaliser, ScoreScale
from steerboard_workers.alignment.training_method import RewardedMethod, Row, Selection


class DecisionTransformer(RewardedMethod[DecisionTransformerConfig]):
    """The scale that turns a reward into a score goes into the model, which is asked by it."""

    def select_rewarded(self, rows: list[Row], rewards: Sequence[float], normaliser: Normaliser) -> Selection:
        config = self.config
        scale = ScoreScale.fit(config.score_scale, rewards, normaliser, config.score_limit)
        form = ConditionFormat.of_score(config.score_limit, config.score_step, config.default_score)
        self._scale, self._attribute = scale, form.attributes[0]
        return Selection(rows, info={"condition": form, "score_scale": scale})

    def condition(self, row: Row) -> str:
        return self._attribute.text(self._scale.score(row["reward"]))

"""MLE with filtering: Eq. 4 of arXiv 2308.12050, SFT on rows with z > threshold."""

from __future__ import annotations

from collections.abc import Sequence

from steerboard_contracts.methods.mle_filter import MleFilterConfig
from steerboard_contracts.prompts import Normaliser
from steerboard_workers.alignment.filtering import NOTHING_LEFT, above
from steerboard_workers.alignment.training_method import RewardedMethod, Row, Selection


class MleFilter(RewardedMethod[MleFilterConfig]):
    """Reports how much of each source it kept."""

    def select_rewarded(self, rows: list[Row], rewards: Sequence[float], normaliser: Normaliser) -> Selection:
        return above(self.config.threshold, rows)

    def nothing_left(self) -> str:
        return NOTHING_LEFT

"""MLE with filtering: Eq. 4 of arXiv 2308.12050, SFT on rows with z > threshold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from steerboard_contracts.methods.mle_filter import MleFilterConfig
from steerboard_contracts.prompts import Normaliser
from steerboard_workers.alignment.training_method import RewardedMethod, Row, Selection


class MleFilter(RewardedMethod[MleFilterConfig]):
    """Reports how much of each source it kept."""

    def select_rewarded(self, rows: list[Row], rewards: Sequence[float], normaliser: Normaliser) -> Selection:
        threshold = self.config.threshold
        kept = [row for row in rows if row["z"] > threshold]
        of_all, of_kept = _by_source(rows), _by_source(kept)
        metrics = {"kept": len(kept) / len(rows)}
        metrics |= {f"kept.{source}": of_kept[source] / n for source, n in sorted(of_all.items())}
        shares = ", ".join(f"{source} {of_kept[source]} of {n}" for source, n in sorted(of_all.items()))
        note = f"kept {len(kept)} of {len(rows)} rows with z > {threshold:g} ({shares})"
        return Selection(kept, summary=dict(metrics), metrics=metrics, notes=[note])

    def nothing_left(self) -> str:
        return "Lower the threshold, or give more data."


def _by_source(rows: list[Row]) -> Counter[str]:
    return Counter(str(row.get("source") or "all") for row in rows)

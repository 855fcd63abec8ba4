"""A dataset's stored figures, put together for the API. No row and no reward is read for it."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from steerboard.datasets.derived_tables import RewardStatistics
from steerboard.datasets.lookup import owner_of
from steerboard.datasets.search.indexing import index_state
from steerboard.datasets.statistics.schemas import DatasetStatisticsOut
from steerboard.datasets.statistics.service import graded_by, statistics_of
from steerboard.datasets.tables import Dataset, RewardSource


def statistics_out(session: Session, dataset: Dataset) -> DatasetStatisticsOut:
    """A labelled dataset has the figures of the rows that it shows, and its own normaliser."""
    figures = statistics_of(session, dataset).figures
    graded = sorted(graded_by(session, dataset), key=lambda item: item[0].id != dataset.reward_source_id)
    first = graded[0] if graded and graded[0][1].by_length else None
    search = index_state(session, owner_of(dataset))
    return DatasetStatisticsOut.model_validate(
        {
            "rows": dataset.rows,
            "held_out_rows": dataset.held_out_rows,
            "turns": figures["turns"],
            "lengths": figures["lengths"],
            "sources": _sources(dataset, figures),
            "duplicates": figures["duplicates"],
            "rewards": [_rewards(dataset, source, stored) for source, stored in graded],
            "reward_by_length": {"source": first[0].name, "bins": first[1].by_length} if first else None,
            "search": {"ready": search.ready, "done": search.done},
        }
    )


def _sources(dataset: Dataset, figures: dict[str, Any]) -> list[dict[str, Any]]:
    counts = dict(figures["sources"])
    if dataset.kind == "labelled" and figures["without_source"]:
        counts["imported"] = counts.get("imported", 0) + figures["without_source"]
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:50]
    return [{"source": name, "rows": rows} for name, rows in ordered]


def _rewards(dataset: Dataset, source: RewardSource, stored: RewardStatistics) -> dict[str, Any]:
    pinned = dataset.normaliser if source.id == dataset.reward_source_id else None
    mean, sd = (pinned or stored.figures)["mean"], (pinned or stored.figures)["sd"]

    def z(raw: float) -> float:
        return float((raw - mean) / sd) if sd else 0.0

    # z rises with the reward, so equal bins of the one are equal bins of the other.
    bins = [{"low": z(bin_["low"]), "high": z(bin_["high"]), "count": bin_["count"]} for bin_ in stored.bins]
    return {
        "source": source.name,
        "kind": source.kind,
        "figures": stored.figures,
        "bins": stored.bins,
        "normalised": {"mean": mean, "sd": sd, "bins": bins},
    }

"""Evaluations: models answer the same prompts, people and judges compare them, a gate decides."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from steerboard_client._sync.connection import Connection
from steerboard_client._sync.datasets import Dataset
from steerboard_client._sync.datasets import find as find_dataset
from steerboard_client._sync.models import Model
from steerboard_client._sync.pipelines import gate_body
from steerboard_client.errors import BadInput, RunFailed, WaitTimeout
from steerboard_client.schemas import CampaignOut, EvaluationDetail, EvaluationReport, GateVerdict
from steerboard_client.wire import path_of

_POLL_SECONDS = 1.0


class Evaluation:
    """One evaluation. `info` is as of the last call; `refresh` renews it."""

    def __init__(self, connection: Connection, info: EvaluationDetail) -> None:
        self._connection = connection
        self.info = info

    @property
    def id(self) -> str:
        return str(self.info.id)

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def state(self) -> str:
        return self.info.state

    @property
    def url(self) -> str:
        """Its page in the dashboard."""
        return f"{self._connection.url}/p/{self._connection.project}/evaluations/{self.name}"

    def __repr__(self) -> str:
        return f"<Evaluation {self.name}: {self.state}>"

    def refresh(self) -> Evaluation:
        self.info = self._connection.load(EvaluationDetail, path_of("evaluations", self.id))
        return self

    def wait(self, *, timeout: float | None = None, check: bool = True) -> Evaluation:
        """Waits until all answers, rewards and verdicts that were asked for are there. Raises `RunFailed` unless
        `check` is false, and `WaitTimeout` after `timeout` seconds."""
        began = time.monotonic()
        while self._is_under_way():
            if timeout is not None and time.monotonic() - began > timeout:
                raise WaitTimeout(f"{self.name} has not ended after {timeout:g} s; it continues.")
            time.sleep(_POLL_SECONDS)
        if check and (self.state == "failed" or self.info.unfinished):
            raise RunFailed(f"{self.name} is not complete: {'; '.join(self.info.unfinished)}", hint=f"See {self.url}")
        return self

    def _is_under_way(self) -> bool:
        self.refresh()
        parts: list[Any] = [*self.info.entrants, *self.info.reward_assessments, *self.info.judges]
        open_ = ("pending", "queued", "running", "paused")
        return bool(self.info.contamination.waiting) or any(getattr(part, "state", None) in open_ for part in parts)

    def report(self) -> EvaluationReport:
        return self._connection.load(EvaluationReport, f"{path_of('evaluations', self.id)}/report")

    def gate(self, rules: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> GateVerdict:
        """Holds rules against the report: `[{"metric": "win_rate", "entrant": ..., "op": ">", "value": 0.5}]`."""
        verdict = self._connection.post(f"{path_of('evaluations', self.id)}/gate", gate_body(rules))
        return GateVerdict.model_validate(verdict)

    def rank_link(self, *, annotator: str | None = None, campaign: str | None = None, **settings: Any) -> str:
        """A link that signs an annotator in and shows the answers blind. Without `campaign`, one is begun; `settings`
        are those of the campaign, such as `entrants`, `overlap`, `limit` and `instructions`."""
        path = path_of("evaluations", self.id, "campaigns")
        if campaign is None:
            campaign = (self._connection.post(path, settings))["id"]
        elif settings:
            raise BadInput("settings are those of a new campaign", code="bad_settings", hint="Give no campaign.")
        made = self._connection.post(f"{path}/{path_of(campaign)}/annotators", {"name": annotator})
        return str(made["link"])

    def campaigns(self) -> list[CampaignOut]:
        """What people rank, and how far they are: `done_items` of `items`."""
        page = self._connection.get(path_of("evaluations", self.id, "campaigns"))
        return [CampaignOut.model_validate(row) for row in page["items"]]

    def preferences(self, name: str, **settings: Any) -> Dataset:
        """A new dataset of preference pairs from its rankings and verdicts, called `name` and a number. `settings` are
        those of the API, such as `sources`, `pairs`, `votes` and `min_agreement`."""
        path = f"{path_of('evaluations', self.id)}/preferences"
        return find_dataset(self._connection, (self._connection.post(path, {"name": name, **settings}))["id"])


def find(connection: Connection, ref: str) -> Evaluation:
    return Evaluation(connection, connection.load(EvaluationDetail, path_of("evaluations", ref)))


def create(
    connection: Connection,
    name: str,
    prompts: Any,
    entrants: Sequence[Any],
    rewards: Sequence[Any],
    settings: Mapping[str, Any],
) -> Evaluation:
    body = {
        "name": name,
        "prompts": _prompts(prompts),
        "entrants": [_entrant(entrant) for entrant in entrants],
        "rewards": [reward.id if isinstance(reward, Model) else str(reward) for reward in rewards],
        **settings,
    }
    made = connection.post("evaluations", body)
    return find(connection, str(made["id"]))


def _prompts(prompts: Any) -> dict[str, Any]:
    """Held-out rows of a dataset, or what the API takes."""
    if isinstance(prompts, Mapping):
        return dict(prompts)
    return {"dataset": prompts.id if isinstance(prompts, Dataset) else str(prompts), "split": "held_out"}


def _entrant(entrant: Any) -> dict[str, Any]:
    """A model, its name, or `{"model": ..., "score": 5.0, "decoding": {...}}`."""
    if isinstance(entrant, Mapping):
        given = dict(entrant)
        if isinstance(given.get("model"), Model):
            given["model"] = given["model"].id
        return given
    return {"model": entrant.id if isinstance(entrant, Model) else str(entrant)}

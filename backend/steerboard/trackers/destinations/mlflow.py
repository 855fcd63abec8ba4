"""MLflow, by its REST API: each address is checked where the connection is made, and nothing has to be installed.

The API is the one of https://mlflow.org/docs/latest/rest-api.html, which MLflow and Databricks keep stable. A metric's
timestamp follows from its step, so that MLflow's store keeps one row of a point that is sent again.
"""

from __future__ import annotations

from typing import Any

import httpx

from steerboard.trackers.destinations.protocol import Batch, ExportedRun, NotExported, Place, Written
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.network.addresses import AllowList
from steerboard_contracts.network.safe_http import open_client

_SECONDS = 20.0
# The most in one request: https://mlflow.org/docs/latest/rest-api.html#request-limits
_MOST_METRICS, _MOST_PARAMS = 1000, 100
_LONGEST_NAME, _LONGEST_VALUE = 250, 500
_RUN_TAG = "steerboard.run_id"
_STATUS = {"succeeded": "FINISHED", "failed": "FAILED", "cancelled": "KILLED"}
_SHOWN = 300


class Mlflow:
    def __init__(self, place: Place) -> None:
        self._url = str(place.settings["url"]).rstrip("/")
        self._experiment_name = str(place.settings.get("experiment") or place.project)
        self._client = open_client(AllowList(place.allowed), timeout_seconds=_SECONDS)
        user = place.settings.get("user")
        if user:
            self._client.auth = httpx.BasicAuth(user, place.secret or "")
        elif place.secret:
            self._client.headers["Authorization"] = f"Bearer {place.secret}"
        self._experiment: str | None = None
        self._running: set[str] = set()

    def write(self, batch: Batch) -> Written:
        experiment = self._experiment or self._find_experiment()
        remote = batch.remote or self._find_run(experiment, batch.run)
        if remote not in self._running:
            self._post("runs/update", {"run_id": remote, "status": "RUNNING"})
            self._running.add(remote)
        metrics = [
            {"key": _name(name), "value": _number(value), "timestamp": batch.run.created_ms + step, "step": step}
            for step, values in batch.points
            for name, value in values.items()
        ]
        for start in range(0, len(metrics), _MOST_METRICS):
            self._post("runs/log-batch", {"run_id": remote, "metrics": metrics[start : start + _MOST_METRICS]})
        if batch.end is not None:
            tags = {"steerboard.reason": batch.end.reason}
            tags |= {f"steerboard.output.{name}": url for name, url in batch.end.outputs.items()}
            self._tag(remote, tags)
            status = _STATUS.get(batch.end.state, "KILLED")
            self._post("runs/update", {"run_id": remote, "status": status, "end_time": batch.end.ended_ms})
            self._running.discard(remote)
        return Written(remote, f"{self._url}/#/experiments/{experiment}/runs/{remote}", None, batch.last())

    def close(self) -> dict[str, int | None]:
        self._client.close()
        return {}

    def _find_experiment(self) -> str:
        """Found by name, or made."""
        named = {"experiment_name": self._experiment_name}
        known = self._call("GET", "experiments/get-by-name", params=named, absent="RESOURCE_DOES_NOT_EXIST")
        if known is None:
            made = self._call(
                "POST", "experiments/create", json={"name": self._experiment_name}, absent="RESOURCE_ALREADY_EXISTS"
            )
            known = {"experiment": made} if made else self._call("GET", "experiments/get-by-name", params=named)
        self._experiment = str((known or {})["experiment"]["experiment_id"])
        return self._experiment

    def _find_run(self, experiment: str, run: ExportedRun) -> str:
        """The run that an exporter made before it was killed, or a new one."""
        query = {"experiment_ids": [experiment], "filter": f"tags.`{_RUN_TAG}` = '{run.id}'", "max_results": 1}
        runs = self._post("runs/search", query).get("runs")
        if runs:
            remote = str(runs[0]["info"]["run_id"])
            known = {param["key"] for param in runs[0].get("data", {}).get("params", ())}
        else:
            tags = {_RUN_TAG: run.id, "steerboard.url": run.url, "steerboard.kind": run.kind}
            tags |= {"steerboard.method": run.method} if run.method else {}
            made = {
                "experiment_id": experiment,
                "run_name": run.label,
                "start_time": run.created_ms,
                "tags": [{"key": key, "value": value} for key, value in tags.items()],
            }
            remote, known = str(self._post("runs/create", made)["run"]["info"]["run_id"]), set()
        params = [
            {"key": name, "value": value[:_LONGEST_VALUE]}
            for key, value in run.flat_settings().items()
            if (name := _name(key)) not in known
        ]
        for start in range(0, len(params), _MOST_PARAMS):
            self._post("runs/log-batch", {"run_id": remote, "params": params[start : start + _MOST_PARAMS]})
        return remote

    def _tag(self, remote: str, tags: dict[str, str]) -> None:
        written = [{"key": _name(key), "value": value[:_LONGEST_VALUE]} for key, value in tags.items()]
        for start in range(0, len(written), _MOST_PARAMS):
            self._post("runs/log-batch", {"run_id": remote, "tags": written[start : start + _MOST_PARAMS]})

    def _post(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._call("POST", what, json=body) or {}

    def _call(self, method: str, what: str, *, absent: str = "", **options: Any) -> dict[str, Any] | None:
        """The answer; None where MLflow's error code is `absent`. Raises `NotExported`."""
        try:
            answer = self._client.request(method, f"{self._url}/api/2.0/mlflow/{what}", **options)
        except SteerboardError as error:
            raise NotExported(f"{error.code}: {error.detail}") from None
        except httpx.HTTPError as error:
            raise NotExported(f"MLflow did not answer: {error or type(error).__name__}") from None
        try:
            body = answer.json()
        except ValueError:
            body = None
        if answer.is_success and isinstance(body, dict):
            return body
        body = body if isinstance(body, dict) else {}
        if absent and body.get("error_code") == absent:
            return None
        message = body.get("message") or answer.text[:_SHOWN]
        raise NotExported(f"MLflow answered {answer.status_code} to {what}: {str(message)[:_SHOWN]}")


def _name(name: str) -> str:
    """MLflow's names have letters, digits, `_-. :/`, and no way out of a folder."""
    kept = "".join(letter if letter.isalnum() or letter in "_-. :/" else "_" for letter in name)
    return "/".join(part for part in kept.split("/") if part.strip(". "))[:_LONGEST_NAME] or "_"


def _number(value: float) -> float | str:
    """The value as protobuf's JSON writes what JSON itself has no number for."""
    if value != value:
        return "NaN"
    return value if abs(value) != float("inf") else "Infinity" if value > 0 else "-Infinity"

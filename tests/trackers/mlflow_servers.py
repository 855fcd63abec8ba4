"""MLflow: a server in memory that answers as MLflow does to what we ask, and the real one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from support.patience import wait_until
from support.servers.other_server import Answer, OtherServer, Seen

PYTHON = Path(__file__).parents[2] / ".venv-mlflow" / "bin" / "python"


class FakeMlflow:
    """Keeps a point once where its time, step and value are the same, as MLflow's store does."""

    def __init__(self, other: OtherServer) -> None:
        self.experiments: dict[str, str] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        self.metrics: dict[str, set[tuple[str, int, int, float]]] = {}
        self.down = False
        other.answer = self.answer

    def answer(self, seen: Seen) -> Answer:
        if self.down:
            return Answer.json({"error_code": "INTERNAL_ERROR", "message": "the database is away"}, 500)
        parts = urlsplit(seen.path)
        what = parts.path.removeprefix("/api/2.0/mlflow/")
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        given = seen.json if seen.body else query
        return getattr(self, what.replace("/", "_").replace("-", "_"))(given)

    def experiments_get_by_name(self, given: Any) -> Answer:
        known = self.experiments.get(given["experiment_name"])
        if known is None:
            return Answer.json({"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no such experiment"}, 404)
        return Answer.json({"experiment": {"experiment_id": known, "name": given["experiment_name"]}})

    def experiments_create(self, given: Any) -> Answer:
        self.experiments[given["name"]] = str(len(self.experiments) + 1)
        return Answer.json({"experiment_id": self.experiments[given["name"]]})

    def runs_search(self, given: Any) -> Answer:
        wanted = given["filter"].split("'")[1]
        return Answer.json({"runs": [run for run in self.runs.values() if run["tags"]["steerboard.run_id"] == wanted]})

    def runs_create(self, given: Any) -> Answer:
        id_ = f"r{len(self.runs)}"
        tags = {tag["key"]: tag["value"] for tag in given["tags"]}
        info = {"run_id": id_, "run_name": given["run_name"], "status": "RUNNING"}
        self.runs[id_] = {"info": info, "tags": tags, "data": {"params": []}}
        return Answer.json({"run": self.runs[id_]})

    def runs_log_batch(self, given: Any) -> Answer:
        run = self.runs[given["run_id"]]
        run["data"]["params"] += given.get("params", [])
        run["tags"] |= {tag["key"]: tag["value"] for tag in given.get("tags", [])}
        points = self.metrics.setdefault(given["run_id"], set())
        for one in given.get("metrics", []):
            points.add((one["key"], one["step"], one["timestamp"], float(one["value"])))
        return Answer.json({})

    def runs_update(self, given: Any) -> Answer:
        self.runs[given["run_id"]]["info"]["status"] = given["status"]
        return Answer.json({"run_info": {}})

    def runs_get(self, given: Any) -> Answer:
        run = self.runs[given["run_id"]]
        tags = [{"key": key, "value": value} for key, value in run["tags"].items()]
        return Answer.json({"run": {"info": run["info"], "data": run["data"] | {"tags": tags}}})

    def metrics_get_history(self, given: Any) -> Answer:
        points = [one for one in self.metrics.get(given["run_id"], ()) if one[0] == given["metric_key"]]
        shown = [{"key": key, "step": step, "timestamp": at, "value": value} for key, step, at, value in points]
        return Answer.json({"metrics": shown})


class MlflowReader:
    """What a server has of a run."""

    def __init__(self, url: str, remote: str) -> None:
        self._api, self._remote = f"{url}/api/2.0/mlflow", remote

    def run(self) -> tuple[str, dict[str, str], dict[str, str]]:
        """Status, params and tags."""
        run = httpx.get(f"{self._api}/runs/get", params={"run_id": self._remote}).json()["run"]
        params, tags = ({one["key"]: one["value"] for one in run["data"].get(what, [])} for what in ("params", "tags"))
        return run["info"]["status"], params, tags

    def points(self, name: str) -> list[tuple[int, float]]:
        asked = {"run_id": self._remote, "metric_key": name}
        history = httpx.get(f"{self._api}/metrics/get-history", params=asked).json()["metrics"]
        return sorted((int(one.get("step", 0)), round(float(one["value"]), 5)) for one in history)


@contextmanager
def real_mlflow(folder: Path, port: int) -> Iterator[str]:
    """`mlflow server` with a SQLite store."""
    url = f"http://127.0.0.1:{port}"
    command = [PYTHON, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db"]
    command += ["--artifacts-destination", str(folder / "files")]
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            wait_until(lambda: _is_up(url), lambda: (folder / "server.log").read_text(), process=server, pause=0.5)
            yield url
        finally:
            server.terminate()
            server.wait()


def _is_up(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health").is_success
    except httpx.HTTPError:
        return False

"""The rows that runs leave behind: models, datasets, reward sources and reports; and what a plan of rows is."""

from __future__ import annotations

import datetime as dt
import hashlib
import random
import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from steerboard_contracts.models import ModelInfo

Row = dict[str, Any]

_TRAIN = {"sft": "sft", "reward_model": "reward", "mle_filter": "policy", "rwr": "policy"}


@dataclass(frozen=True)
class Known:
    """What the product itself has made before: the project, and a dataset for runs to read."""

    project: uuid.UUID
    data: uuid.UUID


@dataclass
class Plan:
    """Rows by table, in an order that foreign keys allow; `clones` are datasets that get the rows of `Known.data`."""

    tables: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    clones: list[uuid.UUID] = field(default_factory=list)
    trained: list[uuid.UUID] = field(default_factory=list)

    @property
    def runs(self) -> int:
        return len(self.tables["runs"])


class Ids:
    """UUIDv7 of moments in the past, later ones above earlier ones, as lists by age need them."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._count = 0

    def at(self, moment: dt.datetime) -> uuid.UUID:
        self._count += 1
        order = (self._count & 0xFFF) << 64 | (self._count >> 12 & 0xFFFF) << 46
        low = 2 << 62 | self._rng.getrandbits(46)
        return uuid.UUID(int=int(moment.timestamp() * 1000) << 80 | 7 << 76 | order | low)


class Outputs:
    """Adds to a plan what succeeded runs made."""

    def __init__(self, plan: Plan, known: Known, ids: Ids) -> None:
        self._plan, self._known, self._ids = plan, known, ids

    def add(self, run: Row, word: str, name: str, source: uuid.UUID | None) -> uuid.UUID | None:
        """What a succeeded run made. Returns the reward source of its pipeline, once there is one."""
        kind, _, method = word.partition(" ")
        output: Row = {"run_id": run["id"], "name": "output", "type": "model"}
        tables = self._plan.tables
        if kind in ("base", "train"):
            role = "base" if kind == "base" else _TRAIN.get(method, "policy")
            output["model_id"] = self._model(run, role, method or None, name)
            if kind == "train":
                self._plan.trained.append(run["id"])
            if role == "reward":
                source = self._ids.at(run["ended_at"])
                tables["reward_sources"].append(
                    {
                        "id": source,
                        "project_id": self._known.project,
                        "name": name,
                        "kind": "model",
                        "model_id": output["model_id"],
                        "created_at": run["ended_at"],
                    }
                )
        elif kind in ("generate", "mix"):
            output |= {"type": "dataset", "dataset_id": self._dataset(run, name)}
            self._plan.clones.append(output["dataset_id"])
        elif kind == "score":
            output |= {"type": "dataset", "dataset_id": self._dataset(run, name, self._plan.clones[-1], source)}
        else:
            output |= {"type": "report", "document": _REPORT}
        tables["run_outputs"].append(output)
        return source

    def _model(self, run: Row, role: str, method: str | None, name: str) -> uuid.UUID:
        id_ = self._ids.at(run["ended_at"])
        digest = hashlib.sha256(id_.bytes).hexdigest()
        files = ["config.json", "model.safetensors", "steerboard.json", "tokenizer.json", "tokenizer_config.json"]
        manifest = {"files": [{"path": path, "sha256": digest, "size": 3_000_000} for path in files]}
        self._plan.tables["artifacts"].append({"hash": digest, "size": 15_000_000, "manifest": manifest})
        info = ModelInfo.model_validate(
            {
                "role": role,
                "method": method,
                "architecture": "LlamaForCausalLM",
                "parameters": 1_500_000,
                "max_length": 256,
                "lineage": {"data": digest},
                "summary": {"loss": 1.93},
            }
        )
        self._plan.tables["models"].append(
            {
                "id": id_,
                "project_id": self._known.project,
                "name": name,
                "role": role,
                "method": method,
                "artifact_hash": digest,
                "run_id": run["id"],
                "info": info.model_dump(mode="json"),
                "created_at": run["ended_at"],
            }
        )
        return id_

    def _dataset(
        self, run: Row, name: str, base: uuid.UUID | None = None, source: uuid.UUID | None = None
    ) -> uuid.UUID:
        """Labelled with a base. The rest of the row is that of `Known.data`."""
        id_ = self._ids.at(run["ended_at"])
        normaliser = {"mean": 0.5, "sd": 0.25, "n": 20, "reward_source": name} if base else None
        self._plan.tables["datasets"].append(
            {
                "id": id_,
                "name": name,
                "kind": "labelled" if base else "instructions",
                "base_dataset_id": base,
                "reward_source_id": source,
                "normaliser": normaliser,
                "run_id": run["id"],
                "created_at": run["ended_at"],
            }
        )
        return id_


_SCORES = (-5.0, -2.5, 0.0, 2.5, 5.0)
_METHODS: list[tuple[str, float | None]] = [
    ("sft", None),
    ("mle_filter", None),
    ("rwr", None),
    *(("decision_transformer", score) for score in _SCORES),
]
_REPORT: Row = {
    "methods": [
        {
            "method": method,
            "entrant": method,
            "score": score,
            "n": 200,
            "reward_mean": 0.4,
            "reward_low": 0.3,
            "reward_high": 0.5,
            "length_mean": 80.0,
            "truncated": 0.0,
            "distinct_1": 0.4,
            "distinct_2": 0.7,
            "win_rate_vs_baseline": None if method == "sft" else 0.6,
            "independent_win_rate_vs_baseline": None if method == "sft" else 0.58,
            "device_seconds": 120.0,
        }
        for method, score in _METHODS
    ],
    "reward_model": {"held_out_accuracy": 0.7, "pairs": 400},
    "control": {"requested": [-5.0, 0.0, 5.0], "achieved": [-0.4, 0.1, 0.5], "spearman": 1.0},
    "labelled_rewards": {"p20": -0.8, "p50": 0.0, "p80": 0.9, "n": 20},
    "prompts": 200,
    "examples": [
        {
            "prompt": "How long does it keep? " * 8,
            "answers": [
                {"entrant": method, "score": score, "text": "About a week in a cool place. " * 8}
                for method, score in _METHODS
            ],
        }
        for _ in range(3)
    ],
}

"""Rows of pipelines and runs as a busy team would have left them: weeks of them, most succeeded, some under way."""

from __future__ import annotations

import datetime as dt
import hashlib
import random
import uuid

from dashboard.outputs import Ids, Known, Outputs, Plan, Row
from steerboard_contracts.run_config import RUN_CONFIG

_EVERY = dt.timedelta(hours=2)
_RECIPES = ("offline-rlhf", "graded", "demo", "ablation-beta", "ablation-threshold", "nightly")
_PEOPLE = ("user:local", "user:ana", "user:ben", "token:ci")
_SINGLE = (("train", "sft"), ("train", "mle_filter"), ("train", "rwr"), ("generate", None))
_FAR = dt.timedelta(days=2)


def plan_runs(known: Known, runs: int) -> Plan:
    """`runs` of them: pipelines of 12 to 20 stages with a few shards, runs of their own, and some hundred that wait."""
    return _Planner(known, runs).plan


class _Planner:
    def __init__(self, known: Known, runs: int) -> None:
        self.rng = random.Random(1)
        self.ids = Ids(self.rng)
        self.known, self.plan = known, Plan()
        self.outputs = Outputs(self.plan, known, self.ids)
        self.now = dt.datetime.now(dt.UTC)
        self.configs: dict[str, Row] = {}
        waiting = max(4, runs * 3 // 100)
        pipelines = max(4, runs // 20)
        for number in range(pipelines):
            self._pipeline(number, pipelines, self.now - _EVERY * (pipelines - number))
            if self.plan.runs > runs - waiting - 20:
                break
        span = (self.now - _EVERY) - (first := self.now - _EVERY * pipelines)
        for _ in range(runs - waiting - self.plan.runs):
            self._single(first + self.rng.random() * span, self._ended())
        for number in range(waiting):
            self._single(self.now - dt.timedelta(seconds=20 * (waiting - number)), "queued")

    def _ended(self) -> str:
        return self.rng.choices(("succeeded", "failed", "cancelled"), (90, 7, 3))[0]

    def _pipeline(self, number: int, of: int, began: dt.datetime) -> None:
        """The newest few are still running; a failed or cancelled one ends in its middle."""
        id_, name = self.ids.at(began), f"p-{number:04d}"
        recipe = _RECIPES[number % len(_RECIPES)]
        self.plan.tables["pipelines"].append(
            {
                "id": id_,
                "project_id": self.known.project,
                "name": name,
                "recipe": {"name": recipe, "stages": {}},
                "recipe_text": f"name: {recipe}\n" + "# as it was written\n" * 40,
                "settings": {},
                "created_by": self.rng.choice(_PEOPLE),
                "created_at": began,
            }
        )
        stages = self._stages()
        outcome = "running" if number >= of - min(6, of // 2) else self._ended()
        breaks = len(stages) if outcome == "succeeded" else self.rng.randrange(1, len(stages))
        made: dict[str, uuid.UUID] = {}
        source: uuid.UUID | None = None
        at = began
        for place, (stage, word, inputs) in enumerate(stages):
            state = "succeeded" if place < breaks else outcome
            if outcome == "running" and place > breaks:
                state = "pending"
            # What comes after a break never began.
            begun = place <= breaks and state not in ("pending", "queued")
            refs = {slot: made[ref] if ref else None for slot, ref in inputs.items()}
            run = self._run(stage, word, state, at, began, refs, pipeline=id_, begun=begun)
            made[stage] = run["id"]
            if word == "generate" and state == "succeeded" and number % 5 == 0:
                for shard in range(4):
                    self._run(
                        f"{stage}.{shard}", word, state, at, began, {}, pipeline=id_, parent=run["id"], shard=shard
                    )
            if state == "succeeded":
                source = self.outputs.add(run, word, f"{name}.{stage}", source)
            if run["ended_at"]:
                at = run["ended_at"]

    def _stages(self) -> list[tuple[str, str, dict[str, str]]]:
        """(name, word, inputs by slot; an empty reference is the dataset that was imported)."""
        stages = [
            ("base", "base", {}),
            ("sft", "train sft", {"model": "base", "data": ""}),
            ("reward", "train reward_model", {"model": "sft", "data": ""}),
            ("generated", "generate", {"model": "sft", "data": ""}),
            ("mixture", "mix", {"parts.0": "generated", "parts.1": ""}),
            ("labelled", "score", {"data": "mixture", "reward": "reward"}),
        ]
        methods = ("mle_filter", "rwr", "decision_transformer")
        for number in range(self.rng.randint(5, 13)):
            method = methods[number % 3]
            stages.append((f"{method}-{number // 3}", f"train {method}", {"model": "sft", "data": "labelled"}))
        policies = {f"entrants.{place}": stage for place, (stage, *_) in enumerate(stages[6:])}
        return [*stages, ("report", "evaluate", {**policies, "rewards.0": "reward", "data": ""})]

    def _single(self, at: dt.datetime, state: str) -> None:
        kind, method = self.rng.choice(_SINGLE)
        word = f"{kind} {method}" if method else kind
        name = f"{method or kind}-{self.plan.runs}"
        run = self._run(name, word, state, at, at, {"data": None}, begun=state != "queued")
        if state == "succeeded":
            self.outputs.add(run, word, name, None)

    def _run(
        self,
        name: str,
        word: str,
        state: str,
        at: dt.datetime,
        created: dt.datetime,
        inputs: dict[str, uuid.UUID | None],
        *,
        pipeline: uuid.UUID | None = None,
        parent: uuid.UUID | None = None,
        shard: int | None = None,
        begun: bool = True,
    ) -> Row:
        kind, _, method = word.partition(" ")
        seconds = self.rng.uniform(20, 900)
        running = state == "running"
        started = at + dt.timedelta(seconds=3) if begun else None
        if running:
            started = self.now - dt.timedelta(seconds=seconds)
        ended = None
        if state in ("succeeded", "failed", "cancelled"):
            ended = at + dt.timedelta(seconds=seconds if begun else 1)
        attempts = (2 if self.rng.random() < 0.05 else 1) if begun else 0
        lost = 30.0 * (attempts - 1) if attempts else 0.0
        id_ = self.ids.at(created)
        row = {
            "id": id_,
            "project_id": self.known.project,
            "pipeline_id": pipeline,
            "parent_id": parent,
            "shard": shard,
            "name": name,
            "kind": kind,
            "method": method or None,
            "config": self._config(word),
            "state": state,
            "reason": {"queued": "waits for a worker of pool default", "pending": "waits for labelled"}.get(
                state, state
            ),
            "reason_code": {"failed": "out_of_memory", "cancelled": "cancelled"}.get(state),
            "pool": "default",
            "priority": self.rng.choice((0, 0, 0, 5)) if state == "queued" else 0,
            "attempt": attempts,
            "max_attempts": 3,
            "lease_owner": "worker-1" if running else None,
            # No one renews it, and the sweeper must leave it alone.
            "lease_expires_at": self.now + _FAR if running else None,
            "reuse": True,
            "cache_key": hashlib.sha256(id_.bytes).hexdigest() if ended else None,
            "progress": {"step": 400, "of": 1000, "tokens_per_second": 5300.0} if begun else None,
            "summary": {"rows": 900, "loss": 1.93, "tokens": 2_400_000} if state == "succeeded" else None,
            "device_seconds": seconds if ended and begun else 0.0,
            "failed_device_seconds": lost,
            "created_by": self.rng.choice(_PEOPLE),
            "created_at": created,
            "queued_at": at if state != "pending" else None,
            "started_at": started,
            "ended_at": ended,
        }
        self.plan.tables["runs"].append(row)
        for slot, upstream in inputs.items():
            self.plan.tables["run_inputs"].append(
                {
                    "run_id": id_,
                    "name": slot,
                    "upstream_run_id": upstream,
                    "dataset_id": None if upstream else self.known.data,
                }
            )
        self._past(row, attempts, at)
        return row

    def _past(self, run: Row, attempts: int, at: dt.datetime) -> None:
        """The timeline and the attempts."""
        steps: list[tuple[str, dt.datetime, int]] = [("pending", run["created_at"], 0)]
        if run["state"] != "pending":
            steps.append(("queued", at, 0))
        for attempt in range(1, attempts + 1):
            last = attempt == attempts
            steps += [("queued", run["started_at"], attempt - 1)] if attempt > 1 else []
            steps.append(("running", run["started_at"], attempt))
            self.plan.tables["run_attempts"].append(
                {
                    "run_id": run["id"],
                    "attempt": attempt,
                    "worker": "worker-1",
                    "devices": 1,
                    "started_at": run["started_at"],
                    "heartbeat_at": run["ended_at"] or self.now,
                    "ended_at": run["ended_at"] if last else run["started_at"],
                    "outcome": run["state"] if last and run["ended_at"] else None if last else "worker_lost",
                    "device_seconds": run["device_seconds"] if last else 30.0,
                }
            )
        if run["ended_at"]:
            steps.append((run["state"], run["ended_at"], attempts))
        before = None
        for to, moment, attempt in steps:
            self.plan.tables["run_transitions"].append(
                {
                    "id": self.ids.at(moment),
                    "run_id": run["id"],
                    "attempt": attempt,
                    "from_state": before,
                    "to_state": to,
                    "reason": to,
                    "created_at": moment,
                }
            )
            before = to

    def _config(self, word: str) -> Row:
        if word not in self.configs:
            kind, _, method = word.partition(" ")
            extra: Row = {"method": method} if method else {}
            if kind == "base":
                extra["source"] = "random:tiny-llama"
            elif kind == "mix":
                extra["parts"] = [{"share": 0.5}, {}]
            elif kind == "evaluate":
                extra["entrants"] = [{}, {"scores": [-5.0, 0.0, 5.0]}]
            self.configs[word] = RUN_CONFIG.validate_python({"run": kind, **extra}).model_dump(mode="json")
        return self.configs[word]

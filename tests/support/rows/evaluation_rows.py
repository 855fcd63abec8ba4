"""Evaluations as rows, without models, runs or judges: what a report is made of, and nothing else."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import insert, null, select, update
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project, User
from steerboard.evaluation.judge_tables import Judge, Verdict
from steerboard.evaluation.ranking.tables import Campaign, RankingItem, RankingTask
from steerboard.evaluation.report import assembly
from steerboard.evaluation.tables import Entrant, Evaluation, EvaluationPrompt, Response, RewardAssessment, RewardValue
from steerboard.platform.database import new_id, transaction
from steerboard.registry.tables import Artifact, Model
from steerboard_contracts.report.evaluation import EvaluationReport


@dataclass
class Evaluated:
    """An evaluation with `prompts` prompts. Every entrant answers all of them."""

    sessions: sessionmaker[Session]
    project: Project
    name: str = "vicuna"
    prompts: int = 20
    turns: int = 1
    categories: Sequence[str] = ()
    id: uuid.UUID = field(default_factory=new_id)
    ids: dict[str, uuid.UUID] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with transaction(self.sessions) as session:
            made = Evaluation(
                id=self.id,
                project_id=self.project.id,
                name=self.name,
                description="",
                prompts_from={},
                checked_against=[],
                seed=0,
                version=1,
                created_by="test",
            )
            session.add(made)
            session.flush()
            session.add_all(
                EvaluationPrompt(
                    evaluation_id=self.id,
                    position=position,
                    question_id=f"q{position}",
                    category=self.categories[position % len(self.categories)] if self.categories else None,
                    messages=[{"role": "user", "content": f"Question {position}?"}],
                    follow_ups=["And then?"] * (self.turns - 1),
                )
                for position in range(self.prompts)
            )

    def entrant(
        self,
        name: str,
        *,
        letters: int | Sequence[int] = 10,
        samples: int = 1,
        answered: int | None = None,
        lengths: Mapping[tuple[int, int], int] | None = None,
        **columns: Any,
    ) -> uuid.UUID:
        """`letters` of each turn; `answered`: only the first so many prompts; `lengths`: of (position, sample)."""
        id_ = self.ids[name] = new_id()
        with transaction(self.sessions) as session:
            given = {"source": "import", "decoding": {}, **columns}
            session.add(
                Entrant(id=id_, evaluation_id=self.id, position=len(self.ids), name=name, samples=samples, **given)
            )
            session.flush()
            rows = []
            for position in range(self.prompts if answered is None else answered):
                for sample in range(samples):
                    own = letters if isinstance(letters, int) else letters[position]
                    own = (lengths or {}).get((position, sample), own)
                    rows.append(
                        {
                            "entrant_id": id_,
                            "position": position,
                            "sample": sample,
                            # To each prompt another, since repeated answers are a reservation.
                            "turns": [f"{position}x{sample}".ljust(own, "x")[:own]] * self.turns,
                            "tokens": None,
                            "finished": [True] * self.turns,
                        }
                    )
            if rows:
                session.execute(insert(Response), rows)
        return id_

    def judge(
        self, style: str, verdicts: Sequence[Mapping[str, Any]], *, name: str = "judge", **columns: Any
    ) -> uuid.UUID:
        """A verdict: {position, a, b?, value?, turn?, a_first?, status?, weight?, superseded?}, entrants by name."""
        id_ = new_id()
        with transaction(self.sessions) as session:
            given = {"model": "gpt", "settings": {}, "imported": {"file": "x"}, "created_by": "test", **columns}
            session.add(Judge(id=id_, evaluation_id=self.id, name=name, style=style, **given))
            session.flush()
            rows = [
                {
                    "judge_id": id_,
                    "turn": 1,
                    "a_first": None,
                    "weight": 1,
                    "status": "ok",
                    "superseded": False,
                    "value": None,
                    **verdict,
                    "a": self.ids[verdict["a"]],
                    "b": self.ids[verdict["b"]] if verdict.get("b") else None,
                }
                for verdict in verdicts
            ]
            if rows:
                session.execute(insert(Verdict), rows)
        return id_

    def scores(
        self, table: Mapping[str, Sequence[float]], *, style: str = "single", name: str = "judge", **columns: Any
    ) -> None:
        """A score of every entrant's answer to each prompt."""
        verdicts = [
            {"position": position, "a": entrant, "value": float(value)}
            for entrant, values in table.items()
            for position, value in enumerate(values)
        ]
        self.judge(style, verdicts, name=name, **columns)

    def rewards(
        self,
        table: Mapping[str, Sequence[float] | Mapping[tuple[int, int], float]],
        *,
        name: str = "reward",
        content_hash: str = "reward-hash",
        **columns: Any,
    ) -> uuid.UUID:
        """Raw rewards by position, or by (position, sample)."""
        id_ = new_id()
        with transaction(self.sessions) as session:
            session.add(
                RewardAssessment(
                    id=id_, evaluation_id=self.id, name=name, content_hash=content_hash, created_by="test", **columns
                )
            )
            session.flush()
            rows = []
            for entrant, values in table.items():
                given = values if isinstance(values, Mapping) else {(at, 0): value for at, value in enumerate(values)}
                rows += [
                    {
                        "assessment_id": id_,
                        "entrant_id": self.ids[entrant],
                        "position": position,
                        "sample": sample,
                        "value": float(value),
                    }
                    for (position, sample), value in given.items()
                ]
            if rows:
                session.execute(insert(RewardValue), rows)
        return id_

    def campaign(
        self,
        rankings: Mapping[str, Mapping[int, Mapping[str, int]]],
        *,
        name: str = "people",
        criteria: Sequence[str] = (),
        gold: Mapping[int, Mapping[str, int]] | None = None,
        shown: Mapping[tuple[str, int], Sequence[str]] | None = None,
        skipped: Sequence[tuple[str, int]] = (),
        flags: Sequence[tuple[str, int]] = (),
        **columns: Any,
    ) -> uuid.UUID:
        """`rankings[annotator][position]` = {entrant: rank}, of each criterion if there are any. Shown in the entrants'
        order unless `shown` has another."""
        id_, names = new_id(), list(self.ids)
        with transaction(self.sessions) as session:
            given = {
                "instructions": "",
                "entrants": [str(entrant) for entrant in self.ids.values()],
                "overlap": 1,
                "lock_seconds": 600,
                "gold_every": 0,
                "state": "closed",
                "salt": "x",
                "created_by": "test",
                **columns,
            }
            session.add(
                Campaign(
                    id=id_,
                    project_id=self.project.id,
                    evaluation_id=self.id,
                    name=name,
                    criteria=[{"name": criterion, "description": ""} for criterion in criteria],
                    **given,
                )
            )
            session.flush()
            positions = sorted(
                {position for ranked in rankings.values() for position in ranked} | {at for _, at in skipped}
            )
            items = {}
            for place, position in enumerate(positions):
                known = (gold or {}).get(position)
                items[position] = RankingItem(
                    campaign_id=id_,
                    position=position,
                    place=place,
                    gold=null() if known is None else {str(self.ids[entrant]): rank for entrant, rank in known.items()},
                )
                session.add(items[position])
            session.flush()
            for annotator, ranked in rankings.items():
                user = session.scalar(select(User).where(User.name == annotator)) or User(name=annotator)
                session.add(user)
                session.flush()
                for position, ranks in ranked.items():
                    order = (shown or {}).get((annotator, position), names)
                    listed = [ranks[entrant] for entrant in order]
                    session.add(
                        RankingTask(
                            campaign_id=id_,
                            item_id=items[position].id,
                            user_id=user.id,
                            shown=[str(self.ids[entrant]) for entrant in order],
                            state="submitted",
                            ranks=None if criteria else listed,
                            criteria_ranks=dict.fromkeys(criteria, listed) or None,
                            flag="odd" if (annotator, position) in flags else None,
                            seconds=10.0 + position,
                        )
                    )
                for who, position in skipped:
                    if who == annotator:
                        session.add(
                            RankingTask(
                                campaign_id=id_,
                                item_id=items[position].id,
                                user_id=user.id,
                                shown=[str(self.ids[entrant]) for entrant in names],
                                state="skipped",
                                skip_reason="unclear",
                            )
                        )
        return id_

    def model(self, name: str, *, role: str = "policy", info: Mapping[str, Any] | None = None, **columns: Any) -> Model:
        """`info`: what is more than the least that pages of models read."""
        least = {"role": role, "architecture": "LlamaForCausalLM", "parameters": 1, "max_length": 64}
        with transaction(self.sessions) as session:
            artifact = Artifact(hash=f"{self.id.hex}-{name}", size=0, manifest={"files": []})
            session.add(artifact)
            session.flush()
            given = {"artifact_hash": artifact.hash, "info": least | dict(info or {}), **columns}
            made = Model(project_id=self.project.id, name=name, role=role, **given)
            session.add(made)
        return made

    def seen(self, *matches: Mapping[str, Any], checked: Sequence[str] = ("things",)) -> None:
        """What the check found, for the first prompts."""
        with transaction(self.sessions) as session:
            session.execute(
                update(Evaluation)
                .where(Evaluation.id == self.id)
                .values(checked_against=[{"id": str(new_id()), "name": name, "rows": 1} for name in checked])
            )
            for position, match in enumerate(matches):
                session.execute(
                    update(EvaluationPrompt)
                    .where(EvaluationPrompt.evaluation_id == self.id, EvaluationPrompt.position == position)
                    .values(seen=dict(match))
                )

    def changed(self) -> None:
        """A new version, as every change makes one."""
        with transaction(self.sessions) as session:
            session.execute(update(Evaluation).where(Evaluation.id == self.id).values(version=Evaluation.version + 1))

    def report(self) -> EvaluationReport:
        return assembly.compute(self.sessions, self.id)

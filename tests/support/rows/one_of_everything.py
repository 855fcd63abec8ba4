"""A project with one of everything."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import func
from sqlalchemy.orm import Session

from steerboard.accounts import members, service
from steerboard.accounts.tables import Project
from steerboard.arena import tables as arena
from steerboard.datasets import tables as datasets
from steerboard.datasets.collections.tables import Collection, CollectionRow
from steerboard.datasets.imports.tables import Import, ImportUpload
from steerboard.datasets.review.tables import RowChange, RowComment, RowFlag
from steerboard.evaluation import judge_tables as judges
from steerboard.evaluation import tables as evaluation
from steerboard.evaluation.ranking import tables as ranking
from steerboard.evaluation.reward_judges.tables import RewardJudge
from steerboard.marks.tables import ItemComment, SavedView
from steerboard.notices import tables as notices
from steerboard.openai_api import tables as tuning
from steerboard.openai_api.ids import FILE, JOB, shown
from steerboard.platform.database import new_id
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.playground import tables as playground
from steerboard.registry.service import register_model
from steerboard.registry.tables import Endpoint as ModelEndpoint
from steerboard.registry.tables import ModelUpload
from steerboard.runs import tables as runs
from steerboard.sharing.tables import ShareLink
from steerboard.trackers import tables as trackers
from support.models.model_folders import write_model
from support.rows.ended_run import ended_run

# Parameters of paths that name nothing of a project.
SHARED = {
    "kind": "mix",
    "name": "demo",
    "path": "config.json",
    "number": "0",
    "place": "0",
    "position": "0",
    "step": "1",
    "type": "run",
    "pool": "default",
    "code": "x",
}
CHAT = [{"role": "user", "content": "What is tea?"}]


@dataclass
class Things:
    """`refs`: parameter of paths -> how this project's thing may be named there."""

    project: Project
    refs: dict[str, list[str]] = field(default_factory=dict)

    def add(self, session: Session, param: str, row: Any, *, name: bool = False) -> Any:
        session.add(row)
        session.flush()
        self.refs[param] = [str(row.id), str(row.id)[-12:], *([row.name] if name else [])]
        return row


def fill(session: Session, store: ArtifactStore, project: Project, folder: Path, who: str) -> Things:
    """One of everything, ended where it can end. Names begin with `who`, who owns the project."""
    made = Things(project, {"project": [str(project.id), project.name]})
    _, user, _ = members.add(session, project, who, "owner")
    made.refs["user"] = [who]
    common: dict[str, Any] = {"project_id": project.id, "created_by": who}
    token, _ = service.create_token(session, name=f"{who}-token", scopes=["read"], project_id=project.id)
    made.refs["token"] = [str(token.id), token.name]

    rows = {"rows": 1, "held_out_rows": 0, "content_hash": "0" * 64, "origin": {"fields": []}}
    data = datasets.Dataset(project_id=project.id, name=f"{who}-data", kind="labelled", **rows)
    made.add(session, "dataset", data, name=True)
    sample = {"prompt": CHAT, "response": "A drink.", "source": "x"}
    session.add(datasets.SampleRow(dataset_id=data.id, row=0, prompt_hash=1, held_out=False, sample=sample))
    session.add(RowFlag(dataset_id=data.id, row=0, reason="", actor=who))
    session.add(RowChange(dataset_id=data.id, row=0, sample=None, flips=False, revision=new_id(), actor=who))
    remark = ItemComment(type="dataset", item_id=data.id, text="Why?", actor=who, project_id=project.id)
    made.add(session, "item_comment", remark)
    made.add(session, "comment", RowComment(dataset_id=data.id, row=0, text="Why?", actor=who))
    source = datasets.RewardSource(project_id=project.id, name=f"{who}-grades", kind="imported")
    made.add(session, "source", source, name=True)
    session.add(datasets.Reward(dataset_id=data.id, reward_source_id=source.id, row=0, value=1.0))
    collection = Collection(name=f"{who}-kept", kind="instructions", **common)
    made.add(session, "collection", collection, name=True)
    kept = {"prompt": CHAT, "response": "A drink."}
    made.add(session, "row", CollectionRow(collection_id=collection.id, place=1, sample=kept, actor=who))
    imported = Import(
        name=f"{who}-import",
        file_name="x.jsonl",
        files=[{"label": "x.jsonl", "size": 1}],
        files_gone=True,
        size=0,
        format="jsonl",
        state="cancelled",
        columns=[],
        options={},
        attempt=0,
        **common,
    )
    made.add(session, "import_id", imported)

    model = register_model(
        session,
        store,
        project,
        name=f"{who}-model",
        folder=write_model(folder / who),
        role="sft",
        method="sft",
        parent_id=None,
        run_id=None,
    )
    made.refs["model"] = [str(model.id), model.name]
    file = {"path": SHARED["path"], "sha256": hashlib.sha256(b"{}").hexdigest(), "size": 2}
    upload = ModelUpload(
        name="coming", hash=hashlib.sha256(who.encode()).hexdigest(), files=[file], received=[], **common
    )
    session.add(upload)
    made.refs["hash"] = [upload.hash]
    parts = ImportUpload(file_name="rows.jsonl", size=2, sha256=file["sha256"], **common)
    made.add(session, "upload", parts)
    sent = tuning.OpenAIFile(name="x.jsonl", purpose="fine-tune", size=1, artifact_hash=model.artifact_hash, **common)
    session.add(sent)
    session.flush()
    job = tuning.FineTuningJob(model=model.name, training_file=sent.id, plan={}, seed=1, state="cancelled", **common)
    session.add(job)
    session.flush()
    made.refs |= {"file": [shown(FILE, sent.id)], "job": [shown(JOB, job.id)]}
    served = ModelEndpoint(project_id=project.id, name=f"{who}-served", base_url="http://127.0.0.1:1/v1", model="m")
    made.add(session, "endpoint", served, name=True)
    pipeline = runs.Pipeline(name=f"{who}-pipeline", recipe={}, recipe_text="", settings={}, **common)
    made.add(session, "pipeline", pipeline, name=True)
    failed = {"state": "failed", "reason": "for a test", "created_by": who}
    run = ended_run(
        project.id,
        pipeline_id=pipeline.id,
        name="report",
        kind="evaluate",
        config={"run": "evaluate", "entrants": [{}]},
        **failed,
    )
    made.add(session, "run", run)
    session.add(RewardJudge(run_id=run.id, place=0))
    made.refs["run"].append(f"{pipeline.name}.report")
    made.refs["item"] = made.refs["run"]
    view = SavedView(name=f"{who}-view", query={"filter": "", "sort": "-created", "columns": []}, **common)
    made.add(session, "view", view, name=True)
    made.refs["view"] = [view.name]

    now = func.clock_timestamp()
    comparison = playground.Comparison(prompt=CHAT, seed=1, attempt=1, ended_at=now, **common)
    made.add(session, "comparison", comparison)
    curve = playground.Curve(
        model_id=model.id,
        model_name=model.name,
        reward_model_id=model.id,
        reward_model_name=model.name,
        dataset_id=data.id,
        dataset_name=data.name,
        split="held_out",
        scores=[0.0],
        prompt_limit=1,
        prompts=[],
        decoding={},
        seed=1,
        state="succeeded",
        done=1,
        total=1,
        points=[],
        attempt=1,
        ended_at=now,
        **common,
    )
    made.add(session, "curve", curve)

    met = arena.Arena(
        name=f"{who}-arena",
        entrants=[
            {"name": name, "endpoint": str(served.id), "score": None, "decoding": {"temperature": temperature}}
            for name, temperature in (("calm", 0.0), ("wild", 1.0))
        ],
        sides=2,
        categories=[],
        seed=1,
        state="open",
        **common,
    )
    made.add(session, "arena", met, name=True)
    battle = arena.Battle(project_id=project.id, arena_id=met.id, user_id=user.id, number=0, entrants=[0, 1], seed=1)
    made.add(session, "battle", battle)
    hidden = playground.Comparison(prompt=CHAT, blind=True, seed=1, attempt=1, ended_at=now, **common)
    session.add(hidden)
    session.flush()
    for place in range(2):
        session.add(
            playground.PlaygroundAnswer(
                comparison_id=hidden.id,
                place=place,
                endpoint_id=served.id,
                name=served.name,
                decoding={},
                seed=1,
                reuse_key="x",
                state="succeeded",
                text=f"answer {place}",
                tokens=1,
                finished=True,
                reused=False,
                ended_at=now,
            )
        )
    session.add(arena.Turn(battle_id=battle.id, place=0, prompt="What is tea?", comparison_id=hidden.id))

    told = {"url": "http://127.0.0.1:1/", "events": ["run.failed"], "secret_sealed": "x", "active": True}
    hook = notices.NoticeRule(project_id=project.id, name=f"{who}-hook", **told)
    made.add(session, "rule", hook, name=True)
    sent = {"event": "run.failed", "payload": {}, "state": "failed", "attempt": 10, "tries_left": 0}
    made.add(session, "delivery", notices.NoticeDelivery(rule_id=hook.id, **sent))

    session.add(notices.Notice(project_id=project.id, event="run.failed", data={"name": hook.name, "path": "/runs"}))

    written = {"kind": "tensorboard", "settings": {}, "run_kinds": ["train"], "active": False}
    tracker = trackers.Tracker(project_id=project.id, name=f"{who}-tracker", **written)
    made.add(session, "tracker", tracker, name=True)

    prompts = [{"question_id": "q", "category": None, "messages": CHAT, "follow_ups": [], "reference": None}]
    prompt_set = evaluation.PromptSet(name=f"{who}-prompts", format="own", prompts=prompts, **common)
    made.add(session, "prompt_set", prompt_set, name=True)
    told_from = {"kind": "prompt_set", "name": prompt_set.name}
    compared = evaluation.Evaluation(
        name=f"{who}-evaluation",
        description="",
        prompts_from=told_from,
        checked_against=[],
        seed=0,
        version=1,
        **common,
    )
    made.add(session, "evaluation", compared, name=True)
    session.add(
        evaluation.EvaluationPrompt(
            evaluation_id=compared.id, position=0, question_id="q", messages=CHAT, follow_ups=[]
        )
    )
    code_hash = hashlib.sha256(f"{who} shares".encode()).hexdigest()
    shared = {"kind": "report", "title": compared.name, "code_hash": code_hash, **common}
    ends = func.clock_timestamp() + func.make_interval(0, 0, 0, 1)
    made.add(session, "link", ShareLink(evaluation_id=compared.id, expires_at=ends, **shared))
    entrants = []
    for place in range(2):
        entrant = evaluation.Entrant(
            evaluation_id=compared.id, position=place, name=f"{who}-e{place}", source="import", decoding={}, samples=1
        )
        made.add(session, "entrant", entrant, name=True)
        session.add(evaluation.Response(entrant_id=entrant.id, position=0, sample=0, turns=[f"answer {place}"]))
        entrants.append(entrant)
    judge = judges.Judge(
        evaluation_id=compared.id,
        name=f"{who}-judge",
        style="single",
        model="m",
        settings={},
        imported={"file": "x", "format": "x", "rows": 0},
        created_by=who,
    )
    made.add(session, "judge", judge, name=True)
    jury = judges.Jury(
        evaluation_id=compared.id, name=f"{who}-jury", judges=[str(judge.id)], rule="majority", created_by=who
    )
    made.add(session, "jury", jury, name=True)
    campaign = ranking.Campaign(
        evaluation_id=compared.id,
        name=f"{who}-campaign",
        instructions="",
        criteria=[],
        entrants=[str(entrant.id) for entrant in entrants],
        overlap=1,
        lock_seconds=600,
        gold_every=0,
        state="open",
        salt="x",
        **common,
    )
    made.add(session, "campaign", campaign, name=True)
    item = ranking.RankingItem(campaign_id=campaign.id, position=0, place=0)
    session.add(item)
    session.flush()
    task = ranking.RankingTask(
        campaign_id=campaign.id,
        item_id=item.id,
        user_id=user.id,
        shown=[str(entrant.id) for entrant in entrants],
        state="locked",
        locked_until=now + func.make_interval(0, 0, 0, 1),
    )
    made.add(session, "task", task)
    flagged = ranking.RankingSpan(task_id=task.id, entrant_id=entrants[0].id, turn=1, start=0, end=6, label="unsafe")
    made.add(session, "span", flagged)
    return made

"""The imports of answers, judgments and prompt sets, as the import process makes them
(`datasets.hooks.import_request`)."""

from __future__ import annotations

from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, audit
from steerboard.datasets.hooks import ToImport
from steerboard.evaluation import rewards
from steerboard.evaluation.imports.answers import import_answers
from steerboard.evaluation.imports.judgments import import_judgments
from steerboard.evaluation.imports.schemas import AnswersForm, AnswersImported, JudgmentsForm, JudgmentsImported
from steerboard.evaluation.judges.presenters import judges_out
from steerboard.evaluation.lookup import get_evaluation
from steerboard.evaluation.prompts.known_sets import check_known
from steerboard.evaluation.prompts.prompt_sets import import_prompts, sets_out
from steerboard.evaluation.prompts.schemas import PromptSetForm, PromptSetOut
from steerboard.evaluation.unmatched import SKIPPED_SHOWN, LeftOut


def answers(session: Session, access: Access, given: ToImport) -> AnswersImported:
    evaluation = get_evaluation(session, access.project, given.into)
    imported = import_answers(session, evaluation, given.file, AnswersForm.model_validate(given.form))
    rewards.assess_new_responses(session, access.project, evaluation, access.actor)
    entered = [entrant.name for entrant in imported.entrants]
    detail = {"file": given.file.label, "entrants": entered, "matched": imported.matched}
    audit(session, access, "evaluation.import_answers", evaluation.name, detail)
    return imported


def judgments(session: Session, access: Access, given: ToImport) -> JudgmentsImported:
    evaluation, left_out = get_evaluation(session, access.project, given.into), LeftOut()
    form = JudgmentsForm.model_validate(given.form)
    judge, read = import_judgments(session, evaluation, given.file, form, access.actor, left_out)
    detail = {"file": given.file.label, "judge": judge.name}
    audit(session, access, "evaluation.import_judgments", evaluation.name, detail)
    return JudgmentsImported(
        format=read.format,
        judge=judges_out(session, evaluation, judge)[0],
        rows=read.rows,
        verdicts=read.verdicts,
        ok=read.statuses["ok"],
        unparsed=read.statuses["unparsed"],
        refused=read.statuses["refused"],
        errors=read.statuses["error"],
        duplicates=read.verdicts - len(read.kept),
        unmatched=left_out.unmatched,
        unmatched_rows=left_out.unmatched_rows,
        entrants_added=read.added,
        skipped=left_out.bad.kept[:SKIPPED_SHOWN],
        skipped_rows=left_out.bad.total,
    )


def prompts(session: Session, access: Access, given: ToImport) -> PromptSetOut:
    """`name` and `format` of the form are final: those of a known set are filled in."""
    form = PromptSetForm.model_validate(given.form)
    made = import_prompts(session, access.project, given.file, form.name, str(form.format), access.actor)
    if form.known is not None:
        check_known(form.known, given.file.label, made.prompts)
    detail = {"file": given.file.label, "prompts": len(made.prompts)}
    audit(session, access, "prompt_set.create", made.name, detail)
    return sets_out(session, [made])[0]

"""Every router of the API, in the order in which requests look for theirs: annotators ask most often."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI

from steerboard.accounts import api as accounts
from steerboard.accounts.http import event_stream
from steerboard.app import health, shared_pages
from steerboard.arena import api as arena
from steerboard.datasets import api as datasets
from steerboard.evaluation import api as evaluation
from steerboard.evaluation.calibration import api as calibration
from steerboard.evaluation.dataset_answers import api as dataset_answers
from steerboard.evaluation.gate import api as gate
from steerboard.evaluation.imports import api as evaluation_imports
from steerboard.evaluation.items import api as items
from steerboard.evaluation.judges import api as judges
from steerboard.evaluation.juries import api as juries
from steerboard.evaluation.preferences import api as preferences
from steerboard.evaluation.prompts import api as prompts
from steerboard.evaluation.ranking import api as ranking
from steerboard.evaluation.ranking.campaigns import api as campaigns
from steerboard.evaluation.ranking.review import api as ranking_review
from steerboard.evaluation.report import api as report
from steerboard.evaluation.report import links_api as report_links
from steerboard.evaluation.reward_judges import api as reward_judges
from steerboard.evaluation.rounds import api as rounds
from steerboard.evaluation.sweeps import api as sweeps
from steerboard.insights import comments_api, inbox_api, marks_api, models_api, previews_api, search_api, system_api
from steerboard.notices import api as notices
from steerboard.notices import feed_api
from steerboard.openai_api import routers as openai_routers
from steerboard.playground import api as playground
from steerboard.publishing import api as publishing
from steerboard.recipes import api as recipes
from steerboard.registry import api as registry
from steerboard.runs import api as runs
from steerboard.runs import quota_api
from steerboard.runs.comparison import api as run_comparison
from steerboard.sharing import api as sharing
from steerboard.trackers import api as trackers
from steerboard.trackers.histories import api as histories

_OF_PROJECT: tuple[APIRouter, ...] = (
    ranking.router,
    ranking_review.router,
    accounts.router,
    datasets.router,
    datasets.project_router,
    registry.router,
    registry.project_router,
    models_api.router,
    models_api.pipeline_router,
    publishing.models_router,
    publishing.datasets_router,
    previews_api.router,
    inbox_api.router,
    marks_api.router,
    comments_api.router,
    search_api.router,
    runs.router,
    quota_api.router,
    run_comparison.router,
    sharing.router,
    recipes.router,
    playground.router,
    arena.router,
    notices.router,
    feed_api.router,
    trackers.router,
    histories.router,
    evaluation.router,
    prompts.router,
    evaluation_imports.router,
    dataset_answers.router,
    items.router,
    judges.router,
    reward_judges.router,
    calibration.router,
    juries.router,
    campaigns.router,
    preferences.router,
    report.router,
    report_links.router,
    gate.router,
    gate.pipeline_router,
    sweeps.router,
    rounds.router,
    event_stream.router,
)
_OF_SYSTEM: tuple[APIRouter, ...] = (accounts.system_router, system_api.system_router, health.router)


def include_routers(app: FastAPI, *, api: str) -> None:
    """`api`: the API's path prefix."""
    for router in _OF_PROJECT:
        app.include_router(router, prefix=f"{api}/projects/{{project}}")
    for router in _OF_SYSTEM:
        app.include_router(router, prefix=api)
    app.include_router(accounts.root_router)
    app.include_router(shared_pages.router)
    openai_routers.include(app)

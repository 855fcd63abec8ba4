"""All routes of OpenAI's API, for the app. They are in no description of ours: OpenAI's is the description."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI

from steerboard.openai_api import files_api, models_api
from steerboard.openai_api.chat import api as chat
from steerboard.openai_api.jobs import api as jobs
from steerboard.openai_api.paths import OF_DEFAULT_PROJECT, OF_PROJECT

_ROUTERS: tuple[APIRouter, ...] = (chat.router, models_api.router, files_api.router, jobs.router)


def include(app: FastAPI) -> None:
    for prefix in (OF_DEFAULT_PROJECT, OF_PROJECT):
        for router in _ROUTERS:
            app.include_router(router, prefix=prefix, include_in_schema=False)

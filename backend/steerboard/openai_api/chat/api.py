"""`/chat/completions` of OpenAI's API, on the models and endpoints of a project."""

from __future__ import annotations

from typing import Any

from fastapi import Depends, Request
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.responses import Response

from steerboard.accounts.access import Credentials, asked_project, identify, require
from steerboard.accounts.http.routes import Router, UnkeptRoute
from steerboard.openai_api.chat import answers
from steerboard.openai_api.chat.completions import Chat
from steerboard.openai_api.chat.schemas import ChatIn
from steerboard.platform.concurrency import in_turn
from steerboard.platform.database import transaction

# Answers are given once: to keep them for a repetition would keep what people write.
router = Router(prefix="/chat", route_class=UnkeptRoute)


async def may_run(request: Request, credentials: Credentials) -> None:
    """Called before the body is read: who may not ask learns nothing of what a question should look like."""

    def check() -> None:
        with transaction(request.app.state.sessions) as session:
            caller = identify(request, session, credentials)
            require(asked_project(request, session, caller)[1], "run")

    await in_turn(request, check)


@router.post("/completions", dependencies=[Depends(may_run)])
async def openai_chat_completion(request: Request, body: ChatIn, credentials: Credentials) -> Response:
    """The answer ends with the connection of its caller, and is not kept."""

    def ask() -> Any:
        with transaction(request.app.state.sessions) as session:
            project, _ = asked_project(request, session, identify(request, session, credentials))
            return answers.ask(session, project, body, request.app.state.settings.lease_seconds)

    chat = Chat(request.app, await in_turn(request, ask), body.model)
    if not body.stream:
        return JSONResponse(await chat.whole(request))
    include_usage = body.stream_options is not None and body.stream_options.include_usage
    return StreamingResponse(
        chat.pieces(include_usage=include_usage),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )

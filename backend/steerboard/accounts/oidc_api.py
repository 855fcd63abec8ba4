"""Signing in at an OpenID provider: the way there and back."""

from __future__ import annotations

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from steerboard.accounts import identities, oidc, service
from steerboard.accounts.access import Caller, audit
from steerboard.accounts.http.routes import Router
from steerboard.accounts.schemas import SignInMethods
from steerboard.accounts.session_api import own_page, signed_in
from steerboard.platform.concurrency import in_turn
from steerboard.platform.database import transaction
from steerboard.platform.http.errors import Unauthenticated, problems

system_router = Router(tags=["session"])
root_router = Router(tags=["session"])

_FAILED = "/sign-in?problem=oidc_failed"


@system_router.get("/sign-in-methods")
def sign_in_methods(request: Request) -> SignInMethods:
    """How people can sign in, besides links and passwords."""
    settings = request.app.state.settings
    return SignInMethods(oidc=settings.oidc_name if settings.oidc_issuer else None)


@root_router.get("/sign-in/oidc", status_code=303, response_class=RedirectResponse, responses=problems(404))
async def begin_oidc(request: Request, back: str = "") -> Response:
    """Redirect to the OpenID provider. `?back=/p/...` names the page to go to afterwards."""
    state = request.app.state
    try:
        address, kept = await oidc.begin(request, state.settings, state.secrets, back)
    except Unauthenticated as error:
        return _failed(request, error)
    response = RedirectResponse(address, status_code=303, headers={"Cache-Control": "no-store"})
    response.set_cookie(
        oidc.COOKIE,
        kept,
        max_age=oidc.COOKIE_SECONDS,
        path=oidc.CALLBACK,
        httponly=True,
        samesite="lax",
        secure=state.settings.public_url.startswith("https://"),
    )
    return response


@root_router.get(oidc.CALLBACK, status_code=303, response_class=RedirectResponse, responses=problems(401, 404))
async def finish_oidc(request: Request) -> Response:
    """Back from the provider: the first sign-in makes the account, each gives the roles of the groups."""
    state = request.app.state
    try:
        claims, back = await oidc.finish(request, state.settings, state.secrets)
    except Unauthenticated as error:
        return _failed(request, error)
    response = RedirectResponse(own_page(back), status_code=303, headers={"Cache-Control": "no-store"})

    def start() -> None:
        with transaction(state.sessions) as session:
            known = identities.person_of(session, claims, state.settings.oidc_roles)
            caller = Caller(f"user:{known.user.name}", f"user:{known.user.id}", known.user.id, None, None)
            if known.created or known.linked or known.roles:
                detail = {"new_account": known.created, "linked": known.linked, "roles": known.roles}
                audit(session, caller, "user.oidc", f"user {known.user.name}", detail)
            cookie, browser = service.start_session(session, known.user.id)
            signed_in(request, response, session, cookie, browser)

    await in_turn(request, start)
    response.delete_cookie(oidc.COOKIE, path=oidc.CALLBACK, httponly=True, samesite="lax")
    return response


def _failed(request: Request, error: Unauthenticated) -> Response:
    """A person gets a page, a program the problem."""
    if "text/html" not in request.headers.get("Accept", ""):
        raise error
    return RedirectResponse(_FAILED, status_code=303)

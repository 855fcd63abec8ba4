"""What a hub refuses to take, as errors of ours: by the status of its answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from steerboard_contracts.errors import BadInput, SteerboardError

_SHOWN = 300
_SET_A_TOKEN = "Set the project's hub token in its settings, or HF_TOKEN in the worker's environment."
_CONFLICTS = (409, 412)


class HubBusy(SteerboardError):
    """The hub refuses for a while, or cannot be reached."""

    code = "hub_unavailable"
    status = 502
    title = "The hub cannot be reached"
    retryable = True


class HubRateLimited(HubBusy):
    """The hub has had too many requests of this token or address."""

    code = "hub_rate_limited"
    title = "The hub asks to slow down"


class HubConflict(HubBusy):
    """The repository changed while the commit was prepared."""

    code = "hub_conflict"
    title = "The repository has changed"


class HubRefused(BadInput):
    """The token is missing, unknown, or may not write there."""

    code = "hub_forbidden"
    title = "The hub refuses the token"


@contextmanager
def hub_push_errors(repo: str, token: str | None) -> Iterator[None]:
    """Around requests that write to `repo`.

    Raises `HubRefused` (`hub_unauthorised`, `hub_forbidden`), `BadInput` (`hub_not_found`, `bad_hub_name`,
    `hub_refused`), `HubConflict`, `HubRateLimited`, `HubBusy`. None of them has the token, nor a cause: a server may
    repeat it.
    """
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, HTTPError

    failure: SteerboardError | None = None
    try:
        yield
    except HFValidationError as error:
        failure = BadInput(
            f"{repo} is not a repository's name: {_text(error, token)}",
            code="bad_hub_name",
            hint="Write org/name with letters, digits, `-`, `_` and `.`.",
        )
    except (HTTPError, OSError, RuntimeError, ValueError) as error:
        # A file's upload that failed comes wrapped.
        cause = next((part for part in _chain(error) if isinstance(part, HfHubHTTPError)), None)
        if cause is not None:
            detail = _text(cause if cause is error else f"{error} {cause}", token)
            failure = _of_status(cause.response.status_code, repo, token, detail)
        elif any(isinstance(part, (HTTPError, ConnectionError)) for part in _chain(error)):
            failure = HubBusy(
                f"the hub does not answer: {_text(error, token)}", hint="Check the network, or HF_ENDPOINT."
            )
        else:
            raise
    if failure is not None:
        raise failure from None


def _of_status(status: int, repo: str, token: str | None, detail: str) -> SteerboardError:
    if status == 401 and token is None:
        return HubRefused(f"there is no token to push to {repo} with", code="hub_token_missing", hint=_SET_A_TOKEN)
    if status == 401:
        return HubRefused(
            f"the hub does not know the token: {detail}",
            code="hub_unauthorised",
            hint="It may have expired: create one that may write, and set it in the project's settings.",
        )
    if status == 403:
        return HubRefused(
            f"the token may not write to {repo}: {detail}",
            hint="Give it write access to the repository's owner, or choose a repository of your own.",
        )
    if status == 404:
        return BadInput(
            f"the hub has no {repo}, or the token may not see it: {detail}",
            code="hub_not_found",
            hint="Check the owner's name; an organisation must exist before its repositories.",
        )
    if status in _CONFLICTS:
        return HubConflict(f"{repo} changed while it was pushed to: {detail}", hint="Push again; nothing was doubled.")
    if status == 429:
        return HubRateLimited(f"the hub asks to slow down: {detail}", hint="Wait some minutes, then resume the run.")
    if status >= 500:
        return HubBusy(f"the hub answered {status}: {detail}", hint="Resume the run in a while.")
    return BadInput(f"the hub refused the push with {status}: {detail}", code="hub_refused")


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _text(detail: object, token: str | None) -> str:
    text = " ".join(str(detail).split())
    return (text.replace(token, "***") if token else text)[:_SHOWN]

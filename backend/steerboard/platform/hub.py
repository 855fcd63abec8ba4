"""What the Hugging Face hub refuses, as errors of ours."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from steerboard.platform.storage.disk import disk_of
from steerboard_contracts.errors import BadInput
from steerboard_contracts.files.disk import FULL

_LOG_IN = "log in with `hf auth login` on the server"


@contextmanager
def hub_errors(kind: str, name: str, revision: str | None) -> Iterator[None]:
    """`kind` is a word for what is looked for, such as dataset. Raises `BadInput` (`hub_not_found`, `hub_gated`,
    `hub_unavailable`) and `NoSpaceLeft`."""
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HTTPError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        yield
    except GatedRepoError as error:
        raise BadInput(
            f"the {kind} {name} is gated: its terms must be accepted first",
            code="hub_gated",
            hint=f"Accept them on the page of the {kind}, then {_LOG_IN}.",
        ) from error
    except RevisionNotFoundError as error:
        raise BadInput(
            f"the hub has no revision {revision} of the {kind} {name}",
            code="hub_not_found",
            hint="Give a branch, a tag or a commit of it.",
        ) from error
    except RepositoryNotFoundError as error:
        raise BadInput(
            f"the hub has no {kind} {name}, or it is private",
            code="hub_not_found",
            hint=f"Check the name; for a private one, {_LOG_IN}.",
        ) from error
    except (HfHubHTTPError, HTTPError, OSError) as error:
        if isinstance(error, OSError) and error.errno in FULL:
            raise disk_of(Path(tempfile.gettempdir()), "the hub's files").full() from error
        raise BadInput(
            f"the hub could not be read: {error}", code="hub_unavailable", hint="Check the network, or HF_ENDPOINT."
        ) from error

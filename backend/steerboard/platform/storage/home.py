"""The folder of all data: made if need be, and one sentence for whatever keeps us from using it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from steerboard_contracts.errors import SteerboardError

_HINT = "Choose another folder with --home or STEERBOARD_HOME."


class UnusableHome(SteerboardError):
    """The home is not a folder, or nothing can be written in it."""

    code = "unusable_home"
    title = "The home cannot be used"


def open_home(home: Path) -> None:
    """Make it, and see that it can be written. Raises `UnusableHome`."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=home):
            pass
    except (FileExistsError, NotADirectoryError):
        file = next(path for path in (home, *home.parents) if path.exists())
        raise UnusableHome(f"{home} cannot be the home: {file} is a file, not a folder", hint=_HINT) from None
    except OSError as error:
        raise UnusableHome(
            f"{home} cannot be the home: nothing can be written there ({error.strerror})",
            hint=f"Give yourself write permission there. Or: {_HINT}",
        ) from None

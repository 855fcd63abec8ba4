"""What can go wrong with a dataset, each with a stable code and a way out. What files do wrong is in
`steerboard_files.errors`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steerboard.datasets.schemas import UnusedColumn
from steerboard_contracts.errors import BadInput, BadRow, ErrorLocation, SteerboardError
from steerboard_files.errors import TooMuchWork


class UnusedColumns(BadInput):
    """The importer asked to refuse columns that feed no field. `extra["unused"]` has them with what they could be."""

    code = "unused_columns"
    title = "Some columns would not be used"

    def __init__(self, kind: str, columns: Mapping[str, str], unused: Sequence[UnusedColumn]) -> None:
        used = ", ".join(f"{field} from {column!r}" for field, column in columns.items())
        super().__init__(
            f"as {kind} the file gives {used}; its other columns would be ignored",
            hint="Map them, or import with `unused` = keep.",
            errors=[ErrorLocation(location=column.name, message=column.words) for column in unused],
        )


class NameTaken(BadInput):
    code = "name_taken"
    status = 409
    title = "This name is in use"


class InUse(BadInput):
    """Something still refers to the dataset or model that was to be deleted."""

    code = "in_use"
    status = 409
    title = "Something still refers to it"


class RewardsMismatch(BadInput):
    """Rewards do not cover every row exactly once, or contradict the ones that a labelled dataset pins."""

    code = "rewards_mismatch"
    title = "The rewards do not fit the dataset"


class RowsRefused(BadRow):
    """Bad rows were found and the caller asked to refuse them. `code` is that of the rows where they share one."""


class ImportBusy(BadInput):
    """The import is being validated or run; it cannot be changed or started now."""

    code = "import_busy"
    status = 409
    title = "The import is in progress"


class ImportEnded(BadInput):
    """The import has made its dataset, or has nothing to cancel."""

    code = "import_ended"
    status = 409
    title = "The import has ended"


class UploadDiffers(BadInput):
    """A file is not the one that was announced."""

    code = "upload_differs"
    title = "The file is not the one that was announced"


class UploadIncomplete(BadInput):
    """Parts of an announced file have not come yet, or no more: unfinished uploads are kept for a day."""

    code = "upload_incomplete"
    status = 409
    title = "Parts of the file are missing"


class ImportFileGone(BadInput):
    """Files of finished and of long abandoned imports are removed."""

    code = "import_file_gone"
    status = 409
    title = "The file is no longer there"


class ImportInterrupted(SteerboardError):
    """The process that did the work ended each time, without a word."""

    code = "import_interrupted"
    title = "The import did not finish"


class ImportTimedOut(TooMuchWork):
    """Reading the file takes longer than an import within a request may. Nothing was stored."""

    code = "import_timed_out"
    status = 413
    title = "The file takes too long to read"


class CleaningInterrupted(SteerboardError):
    """The process that cleaned a large dataset ended without an answer. Nothing was stored."""

    code = "cleaning_interrupted"
    title = "Cleaning did not finish"


class CleaningOutOfMemory(TooMuchWork):
    """Cleaning the dataset takes more memory than an import may have. Nothing was stored."""

    code = "cleaning_out_of_memory"
    title = "The dataset takes too much memory to clean"


class CleaningTimedOut(TooMuchWork):
    """Cleaning the dataset takes longer than an import within a request may. Nothing was stored."""

    code = "cleaning_timed_out"
    title = "The dataset takes too long to clean"


class HeldOutFlips(BadInput):
    """An edit flips several held-out rows, against which models are measured."""

    code = "held_out_flips"
    status = 409
    title = "Held-out labels are not flipped in bulk"


class NothingToClean(BadInput):
    code = "nothing_to_clean"
    status = 409
    title = "The dataset is clean"


class NothingPending(BadInput):
    code = "nothing_pending"
    status = 409
    title = "There are no pending changes"


class SearchNotReady(BadInput):
    """`extra` has the number of indexed rows."""

    code = "search_not_ready"
    status = 409
    title = "The search index is not ready"

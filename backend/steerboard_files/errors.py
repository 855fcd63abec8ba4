"""What can go wrong with a file, each with a stable code and a way out."""

from __future__ import annotations

from steerboard_contracts.errors import BadInput


class WrongFileType(BadInput):
    """The content is none of jsonl, csv and parquet, whatever the file is called."""

    code = "wrong_file_type"
    title = "This kind of file cannot be imported"


class EmptyFile(BadInput):
    code = "empty_file"
    title = "The file has no rows"


class BrokenFile(BadInput):
    """A container is damaged: a truncated gzip stream, a parquet file without its footer."""

    code = "broken_file"
    title = "The file is damaged"


class FileTooLarge(BadInput):
    """An upload, or what a compressed file unpacks to, exceeds the limit."""

    code = "file_too_large"
    status = 413
    title = "The file is too large"


class UnknownColumn(BadInput):
    """The columns do not fit the kind, or `--map` names one that is not there."""

    code = "unknown_column"
    title = "The file's columns do not match"


class RepeatedColumn(BadInput):
    """A file has columns of one name, and each reader would take another one of them."""

    code = "repeated_column"
    title = "A column name occurs twice"


class TooMuchWork(BadInput):
    """What the process of imports does for a request takes more than the settings allow. Nothing was stored."""


class ImportOutOfMemory(TooMuchWork):
    """Reading the file takes more memory than an import may have. Nothing was stored."""

    code = "import_out_of_memory"
    status = 413
    title = "The file takes too much memory to read"

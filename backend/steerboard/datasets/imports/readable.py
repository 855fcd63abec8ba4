"""The formats and layouts that are read, described for the page that takes a file."""

from __future__ import annotations

from steerboard.datasets.imports.schemas import ImportFormat, ImportFormats, ImportLayout
from steerboard.datasets.parsing.layouts import STEPS
from steerboard_files.known import ENDINGS, FORMATS, IN_WORDS

FORMATS_OUT = ImportFormats(
    words=IN_WORDS,
    endings=list(ENDINGS),
    formats=[
        ImportFormat(name=format_.name, about=format_.about, endings=list(format_.endings)) for format_ in FORMATS
    ],
    layouts=[ImportLayout(name=layout.name, about=layout.about) for step in STEPS for layout in step],
)

"""The formats and layouts that are read, described for the page that takes a file."""

from __future__ import annotations

from steerboard.datasets.formats.known import ENDINGS, FORMATS, IN_WORDS
from steerboard.datasets.imports.schemas import ImportFormat, ImportFormats, ImportLayout
from steerboard.datasets.parsing.layouts import STEPS

FORMATS_OUT = ImportFormats(
    words=IN_WORDS,
    endings=list(ENDINGS),
    formats=[ImportFormat(name=one.name, about=one.about, endings=list(one.endings)) for one in FORMATS],
    layouts=[ImportLayout(name=one.name, about=one.about) for step in STEPS for one in step],
)

"""Notes as HTML that is safe to show: no HTML of the writer's passes, no picture is loaded, and links leave in a tab of
their own. markdown-it-py refuses links that are not addresses, such as `javascript:`."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict


@cache
def _renderer() -> MarkdownIt:
    renderer = MarkdownIt("js-default", {"html": False, "linkify": False, "breaks": True}).disable("image")
    renderer.add_render_rule("link_open", _link)
    renderer.add_render_rule("heading_open", _heading)
    renderer.add_render_rule("heading_close", _heading)
    return renderer


def _link(
    self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, _env: MutableMapping[str, Any]
) -> str:
    tokens[at].attrSet("target", "_blank")
    tokens[at].attrSet("rel", "noopener noreferrer nofollow")
    return self.renderToken(tokens, at, options, _env)


def _heading(
    self: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, _env: MutableMapping[str, Any]
) -> str:
    """Below the headings of the page that shows the notes."""
    level = min(6, int(tokens[at].tag[1]) + 2)
    return f"<h{level}>" if tokens[at].nesting == 1 else f"</h{level}>\n"


def as_html(text: str) -> str:
    rendered: str = _renderer().render(text)
    return rendered

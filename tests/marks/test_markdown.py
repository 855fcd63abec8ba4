"""Notes as HTML: what a person writes is formatted, and nothing that a browser would execute or load passes."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerboard.marks.markdown import as_html

TAGS = {
    *("p", "em", "strong", "a", "code", "pre", "ul", "ol", "li", "blockquote", "hr", "br", "h3", "h4", "h5", "h6"),
    *("table", "thead", "tbody", "tr", "th", "td", "s"),
}
ATTRIBUTES = {
    "a": {"href", "title", "target", "rel"},
    "code": {"class"},
    "ol": {"start"},
    "th": {"style"},
    "td": {"style"},
}
PIECES = st.sampled_from(
    [
        *("<script>", "</p>", "<img src=x onerror=y>", "<a href='", "&lt;", '"', "'"),
        *(
            "[a](javascript:x)",
            "[a](",
            "http://x.y)",
            "![p](http://x/y.png)",
            "data:text/html,",
            "[x]: javascript:y",
            "[x]",
        ),
        *("# ", "**", "_", "`", "```", "\n", "\n\n", "> ", "- ", "1. ", "|a|b|\n|-|-|\n", "\\", " ", "a"),
    ]
)


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            self.faults.append(tag)
        for name, value in attrs:
            if name not in ATTRIBUTES.get(tag, set()):
                self.faults.append(f"{tag} {name}")
            target = (value or "").strip().lower()
            if name == "href" and target.startswith(("javascript:", "vbscript:", "data:", "file:")):
                self.faults.append(target)
            if name == "style" and not target.startswith("text-align:"):
                self.faults.append(target)


@given(st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=100))
def test_only_harmless_tags_come_out(text: str) -> None:
    seen = Seen()
    seen.feed(as_html(text))
    assert seen.faults == []


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("**bold** and `code`", "<p><strong>bold</strong> and <code>code</code></p>"),
        ("# Title", "<h3>Title</h3>"),
        ("[a](https://x.y)", '<p><a href="https://x.y" target="_blank" rel="noopener noreferrer nofollow">a</a></p>'),
        ("<b>x</b>", "<p>&lt;b&gt;x&lt;/b&gt;</p>"),
    ],
)
def test_markdown_is_formatted(text: str, html: str) -> None:
    assert as_html(text).strip() == html

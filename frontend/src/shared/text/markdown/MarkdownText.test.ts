import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { MarkdownText } from "./MarkdownText";

const html = (text: string) =>
  renderToStaticMarkup(createElement(MarkdownText, { text })).replace(
    /^<div class="markdown">(.*)<\/div>$/s,
    "$1",
  );

describe("a model's Markdown", () => {
  it.each([
    [
      "**bold** and *so* and __this__",
      "<p><strong>bold</strong> and <em>so</em> and <strong>this</strong></p>",
    ],
    ["***both***", "<p><strong><em>both</em></strong></p>"],
    ["*a **b** c*", "<p><em>a <strong>b</strong> c</em></p>"],
    ["~~gone~~ `x **y**` \\*as it is\\*", "<p><del>gone</del> <code>x **y**</code> *as it is*</p>"],
    ["2 * 3 * 4, snake_case_name and **open", "<p>2 * 3 * 4, snake_case_name and **open</p>"],
    ["one\ntwo\n\nthree", "<p>one\ntwo</p><p>three</p>"],
    ["## Title ##", '<p class="markdown-heading" data-level="2">Title</p>'],
    [
      "- a\n- b\n  1. c\n  2. d",
      '<ul><li><p>a</p></li><li><p>b</p><ol start="1"><li><p>c</p></li><li><p>d</p></li></ol></li></ul>',
    ],
    ["3. a\n\n4. b", '<ol start="3"><li><p>a</p></li><li><p>b</p></li></ol>'],
    ["> quoted\n> so\n\nthen", "<blockquote><p>quoted\nso</p></blockquote><p>then</p>"],
    ["a\n\n---\n\nb", "<p>a</p><hr/><p>b</p>"],
  ])("renders %j", (text, expected) => expect(html(text)).toBe(expected));

  it("keeps code as it is, also where the fence has no end", () => {
    const code = (text: string) => `<pre class="markdown-code" tabindex="0">${text}</pre>`;
    expect(html("```py\nif a:\n    b = **c\n```\nthen")).toBe(`${code("if a:\n    b = **c")}<p>then</p>`);
    expect(html("~~~\nopen\n```")).toBe(code("open\n```"));
  });

  it("renders tables", () => {
    expect(html("| a | b |\n| --- | :-: |\n| 1 | `x\\|y` |")).toContain(
      "<thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td><code>x|y</code></td></tr></tbody>",
    );
    expect(html("a | b")).toBe("<p>a | b</p>");
  });

  it("shows HTML, pictures and addresses that are not of the web as text", () => {
    expect(html("<img src=x onerror=alert(1)>")).toBe("<p>&lt;img src=x onerror=alert(1)&gt;</p>");
    for (const text of ["[a](javascript:alert(1))", "[a](data:text/html,x)", "[a](//x.org)"])
      expect(html(text)).not.toContain("<a");
    expect(html("![a](https://x.org/p.png)")).not.toContain("<img");
    expect(html("[a](https://x.org/)")).toBe(
      '<p><a href="https://x.org/" target="_blank" rel="noopener noreferrer nofollow" title="https://x.org/">a</a></p>',
    );
  });

  it.each(["*a ", "**a `", "[", "`a ``b ", "> ", "- ", "|", "_a_ ", "#", " ", "***", "~~a", "[a](", "\\"])(
    "takes little time for a long run of %j",
    (piece) => {
      const began = performance.now();
      for (const text of [
        piece.repeat(20_000 / piece.length),
        `|${piece.repeat(30_000)}\nx`,
        `x|\n${piece.repeat(30_000)}x`,
      ])
        html(text);
      expect(performance.now() - began).toBeLessThan(2000);
    },
  );
});

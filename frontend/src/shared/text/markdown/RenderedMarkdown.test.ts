import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import { RenderedMarkdown } from "./RenderedMarkdown";

const whole = (text: string) => renderToStaticMarkup(createElement(RenderedMarkdown, { text }));
// Browsers show no blanks between blocks.
const html = (text: string) =>
  whole(text)
    .replace(/^<div class="markdown">(.*)<\/div>$/s, "$1")
    .replace(/>\n</g, "><");

describe("a model's Markdown", () => {
  it.each([
    [
      "**bold**, *so* and ***both***",
      "<strong>bold</strong>, <em>so</em> and <em><strong>both</strong></em>",
    ],
    ["~~gone~~, and ~5 of ~6", "<del>gone</del>, and ~5 of ~6"],
    ["2 * 3 * 4, snake_case_name and **open", "2 * 3 * 4, snake_case_name and **open"],
    ["one\ntwo  \nthree", "one\ntwo\nthree"],
  ])("renders %j", (text, expected) => expect(html(text)).toBe(`<p>${expected}</p>`));

  it("has no headings of the page", () => {
    expect(html("## Title ##")).toBe('<p class="markdown-heading" data-level="2">Title</p>');
    expect(html("Title\n===\n\n###### Low")).not.toMatch(/<h\d/);
  });

  it("keeps the line breaks of quotes and of the items of lists", () => {
    expect(html("> quoted\n> so")).toBe("<blockquote><p>quoted\nso</p></blockquote>");
    expect(html("- a\n  b\n- c\n  1. d")).toBe(
      "<ul><li><p>a\nb</p></li><li><p>c</p><ol><li><p>d</p></li></ol></li></ul>",
    );
    expect(html("3. a\n4. b")).toContain('<ol start="3">');
  });

  it("ticks the items of a list without a form's fields", () => {
    expect(html("- [x] done\n- [ ] open")).toBe(
      '<ul class="contains-task-list"><li class="task-list-item"><p>☑ done</p></li>' +
        '<li class="task-list-item"><p>☐ open</p></li></ul>',
    );
  });

  it("keeps code as it is, also where the fence has no end", () => {
    const code = (text: string) => `<pre class="markdown-code" tabindex="0"><code>${text}\n</code></pre>`;
    expect(html("```py\nif a:\n    b = **c\n```\nthen")).toBe(`${code("if a:\n    b = **c")}<p>then</p>`);
    expect(html("~~~\nopen\n```")).toBe(code("open\n```"));
  });

  it("lets a reader scroll through a wide table", () => {
    const table = html("| a | b |\n| --- | --- |\n| 1 | `x\\|y` |");
    expect(table).toMatch(
      /^<div class="markdown-table" tabindex="0" role="group" aria-label="[^"]+"><table>/,
    );
    expect(table).toContain("<td>1</td><td><code>x|y</code></td>");
  });

  it.each([
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>\n\n<div>\n<iframe src=x>",
    "<!-- a -->",
  ])("shows %j as text", (text) => expect(html(text)).not.toMatch(/<(?!\/?p>)/));

  it("links addresses of the web only, which learn nothing of the page", () => {
    const link = (address: string, text: string) =>
      `<p><a href="${address}" target="_blank" rel="noopener noreferrer nofollow" title="${address}">${text}</a></p>`;
    expect(html("[a](https://x.org/)")).toBe(link("https://x.org/", "a"));
    expect(html("https://x.org/a")).toBe(link("https://x.org/a", "https://x.org/a"));
    for (const address of [
      "javascript:alert(1)",
      "JavaScript:alert(1)",
      "data:text/html,x",
      "//x.org",
      "/p/a",
    ])
      expect(html(`[a](${address})`)).toBe(`<p>a (${address})</p>`);
    expect(html("[a][b]\n\n[b]: vbscript:x")).toBe("<p>a (vbscript:x)</p>");
  });

  it("loads no picture, and shows its description and address", () => {
    expect(html("![A cat](https://x.org/p.png)")).toBe("<p>A cat (https://x.org/p.png)</p>");
    expect(html("![A cat][p]\n\n[p]: https://x.org/p.png")).toBe("<p>A cat (https://x.org/p.png)</p>");
  });

  it("has no anchors, which several answers of a page would share", () => {
    expect(html("a[^1]\n\n[^1]: b")).not.toMatch(/ id=|<h2|href=/);
  });

  it("shows as it is what is too long or too deep", () => {
    expect(whole(`**a** ${"b ".repeat(10_000)}`)).toMatch(/^<pre class="text">\*\*a\*\* b/);
    expect(whole("> ".repeat(4_000) + "a")).toMatch(/^<pre class="text">&gt; /);
  });

  it.each(["*a ", "_a_ ", "~~a", "[a](", "`a ``b ", "> ", "|"])(
    "takes little time for a long run of %j",
    (piece) => {
      const began = performance.now();
      whole(piece.repeat(20_000 / piece.length));
      expect(performance.now() - began).toBeLessThan(5000);
    },
  );
});

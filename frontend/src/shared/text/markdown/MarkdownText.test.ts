import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { expect, it, vi } from "vitest";

it("keeps raw text unseen until the renderer is here", async () => {
  vi.resetModules();
  const { loadMarkdown, MarkdownText } = await import("./MarkdownText");
  const html = () => renderToStaticMarkup(createElement(MarkdownText, { text: "**a**" }));
  expect(html()).toBe('<pre class="text" style="visibility:hidden">**a**</pre>');
  await loadMarkdown();
  expect(html()).toContain("<strong>a</strong>");
});

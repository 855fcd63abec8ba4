import { type ComponentType, useEffect, useReducer } from "react";

let Rendered: ComponentType<{ text: string }> | undefined;
let loading: Promise<void> | undefined;

/** Fetches what renders Markdown, which only pages with answers need. */
export function loadMarkdown(): Promise<void> {
  loading ??= import("./RenderedMarkdown").then((module) => {
    Rendered = module.RenderedMarkdown;
  });
  // The next text tries again.
  return loading.catch(() => {
    loading = undefined;
  });
}

/** A model's text with its Markdown rendered, in the browser, since annotators also work without a connection. Until
 * the renderer is here the text takes its place unseen, so that raw text never flashes; without a connection it is
 * shown as it is. */
export function MarkdownText({ text }: { text: string }) {
  const [tried, trying] = useReducer(() => true, false);
  useEffect(() => {
    if (!Rendered) void loadMarkdown().then(trying);
  }, []);
  if (Rendered) return <Rendered text={text} />;
  return (
    <pre className="text" style={tried ? undefined : { visibility: "hidden" }}>
      {text}
    </pre>
  );
}

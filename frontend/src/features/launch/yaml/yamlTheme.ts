import { EditorView } from "@codemirror/view";

const BORDER = "1px solid var(--mantine-color-default-border)";
const FLOATING = {
  color: "var(--mantine-color-text)",
  backgroundColor: "var(--mantine-color-body)",
  border: BORDER,
};

/** The editor in Mantine's colours, which follow the colour scheme. Those of the YAML are in `yamlEditor.css`. */
export const THEME = EditorView.theme({
  "&": {
    color: "var(--mantine-color-text)",
    backgroundColor: "var(--mantine-color-body)",
    border: BORDER,
    borderRadius: "var(--mantine-radius-md)",
    maxHeight: "min(70vh, 48rem)",
  },
  "&.cm-focused": { outline: "2px solid var(--mantine-primary-color-filled)", outlineOffset: "-1px" },
  ".cm-scroller": { fontFamily: "var(--mantine-font-family-monospace)", overflow: "auto" },
  ".cm-content, .cm-gutter": { minHeight: "16rem" },
  ".cm-content": { caretColor: "var(--mantine-color-text)" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--mantine-color-text)" },
  ".cm-gutters": {
    color: "var(--mantine-color-dimmed)",
    backgroundColor: "var(--mantine-color-body)",
    borderRight: BORDER,
  },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--mantine-color-default-hover)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "var(--mantine-primary-color-light-hover)",
  },
  ".cm-selectionMatch, .cm-searchMatch": { backgroundColor: "var(--mantine-color-yellow-light-hover)" },
  ".cm-searchMatch-selected": { outline: "1px solid var(--mantine-color-yellow-filled)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--mantine-primary-color-light)" },
  ".cm-foldPlaceholder": { ...FLOATING, color: "var(--mantine-color-dimmed)" },
  ".cm-panels": { ...FLOATING, border: "none" },
  ".cm-panels.cm-panels-bottom": { borderTop: BORDER },
  ".cm-textfield, .cm-button": { ...FLOATING, backgroundImage: "none", borderRadius: "4px" },
  ".cm-panel button[name=close]": { color: "inherit" },
  ".cm-tooltip": FLOATING,
});

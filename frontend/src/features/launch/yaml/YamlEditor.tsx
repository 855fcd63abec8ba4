import { indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { keymap } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import { Text } from "@mantine/core";
import { basicSetup, EditorView } from "codemirror";
import { useEffect, useEffectEvent, useId, useRef } from "react";
import type { FaultPlace } from "../../../api/client";
import { marksOf, offsetOf, type TextPlace } from "./faultPlaces";
import { THEME } from "./yamlTheme";
import "./yamlEditor.css";

interface Properties {
  label: string;
  value: string;
  faults: readonly FaultPlace[];
  /** Where to go: another object is another request. */
  target: TextPlace | null;
  onChange: (text: string) => void;
}

/** A text field for YAML with line numbers, folding, search and undo, and a mark at each fault. */
export function YamlEditor({ label, value, faults, target, onChange }: Properties) {
  const holder = useRef<HTMLDivElement>(null);
  const editor = useRef<EditorView>(null);
  const help = useId();
  const changed = useEffectEvent(onChange);
  const begun = useEffectEvent(() => value);

  useEffect(() => {
    const view = new EditorView({
      parent: holder.current!,
      state: EditorState.create({
        doc: begun(),
        extensions: [
          basicSetup,
          yaml(),
          syntaxHighlighting(classHighlighter),
          lintGutter(),
          // Escape and then Tab leave the editor, as in all of CodeMirror.
          keymap.of([indentWithTab]),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": help }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) changed(update.state.doc.toString());
          }),
          THEME,
        ],
      }),
    });
    editor.current = view;
    return () => view.destroy();
  }, [label, help]);

  useEffect(() => {
    const view = editor.current!;
    view.dispatch(setDiagnostics(view.state, marksOf(view.state.doc, faults)));
  }, [faults]);

  useEffect(() => {
    if (!target) return;
    const view = editor.current!;
    const at = offsetOf(view.state.doc, target);
    view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
    view.focus();
  }, [target]);

  return (
    <>
      <div ref={holder} className="yaml-editor" />
      <Text id={help} size="xs" c="dimmed" mt={4}>
        Tab indents; Escape and then Tab leave the editor. Ctrl F searches.
      </Text>
    </>
  );
}

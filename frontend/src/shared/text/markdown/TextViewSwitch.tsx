import { Button } from "@mantine/core";
import { useTextView } from "./textView";

const VIEWS = { rendered: "Rendered", raw: "Raw" } as const;

/** Shows the texts of models with their Markdown, or as they are. Buttons, which leave the page its keys. */
export function TextViewSwitch() {
  const [view, setView] = useTextView();
  return (
    <Button.Group aria-label="Texts of models">
      {(["rendered", "raw"] as const).map((one) => (
        <Button
          key={one}
          size="compact-xs"
          variant={view === one ? "light" : "default"}
          aria-pressed={view === one}
          onClick={() => setView(one)}
        >
          {VIEWS[one]}
        </Button>
      ))}
    </Button.Group>
  );
}

import type { Part } from "./difference";

/** A text whose own parts are marked: as those of a chosen answer, teal, or of a rejected one, red. */
export function Marked({ parts, mark }: { parts: Part[]; mark: "own-chosen" | "own-rejected" }) {
  return parts.map((part, at) =>
    part.own ? (
      <mark key={at} className={mark}>
        {part.text}
      </mark>
    ) : (
      part.text
    ),
  );
}

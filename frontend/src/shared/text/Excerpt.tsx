import type { Schemas } from "../../api/client";

/** A text with the hits of a search marked. */
export function Excerpt({ parts }: { parts: Schemas["ExcerptPart"][] }) {
  return parts.map((part, at) =>
    part.hit ? (
      <mark key={at} className="hit">
        {part.text}
      </mark>
    ) : (
      part.text
    ),
  );
}

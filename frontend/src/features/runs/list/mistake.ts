import type { Problem } from "../../../api/client";

/** A mistake in a filter: the text around it, and what to write instead. */
interface Mistake {
  before: string;
  wrong: string;
  after: string;
  suggestions: string[];
}

/** Where the server found the mistake; null where the problem is about something else than this filter. */
export function mistakeOf(problem: Pick<Problem, "more" | "places">, filter: string): Mistake | null {
  const { position, length, suggestions } = problem.more;
  if (typeof position !== "number" || typeof length !== "number") return null;
  if (!problem.places[0]?.location.startsWith("filter")) return null;
  // The server counts characters, a string of this language halves of some of them.
  const letters = [...filter];
  return {
    before: letters.slice(0, position).join(""),
    wrong: letters.slice(position, position + length).join(""),
    after: letters.slice(position + length).join(""),
    suggestions: Array.isArray(suggestions) ? suggestions.map(String) : [],
  };
}

/** The filter with a name in place of the mistake, in quotes where it needs them. */
export function replaced(mistake: Mistake, name: string): string {
  const written = /^[^\s()"<>=!~:,]+$/.test(name) ? name : `"${name.replace(/(["\\])/g, "\\$1")}"`;
  return mistake.before + written + mistake.after;
}

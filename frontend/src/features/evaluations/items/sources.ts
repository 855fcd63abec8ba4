import type { ItemPage } from "../../../api/evaluation/items";
import type { Schemas } from "../../../api/client";
import { SOURCES } from "../../../shared/report/Reservations";

type Source = ItemPage["sources"][number];
type Outcome = Schemas["SourceOutcome"];

export const keyOf = ({ by, source }: Pick<Source, "by" | "source">) => `${by}:${source}`;

/** `judge gpt`, and whether its figures may be used. */
export function labelOf({ by, source, valid }: Source): string {
  return `${SOURCES[by]} ${source}${valid ? "" : ", not valid"}`;
}

/** Whom a source prefers of two. */
export function preferred({ outcome, flipped }: Outcome, a: string, b: string): string {
  if (outcome === "tie") return flipped ? "tie, its orders differ" : "tie";
  return outcome === "win" ? a : b;
}

export const COLORS: Record<Outcome["outcome"], string> = { win: "teal", tie: "gray", loss: "orange" };

import { createContext } from "react";
import type { Passage, SpanFlag } from "./passages";

interface Flagged {
  spans: readonly SpanFlag[];
  /** What is about to be flagged. */
  pending: Passage | null;
  /** None where flags are only shown. */
  remove?: (span: SpanFlag) => void;
  /** Whether passages can be flagged, whose places are those of the raw text. */
  exact?: boolean;
}

/** The flags of the answers on the screen. */
export const FlaggedContext = createContext<Flagged>({ spans: [], pending: null });

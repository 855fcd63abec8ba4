import { createContext, type ReactNode, useContext } from "react";
import { Link, useProject } from "../links";
import type { ItemsSearch } from "../search";

/** The evaluation whose items the figures below lead to; none below what a stage kept, whose figures are older. */
const Evaluation = createContext<string | null>(null);
export const ItemsOf = Evaluation.Provider;

/** A source as items are filtered by it. */
export type SourceName = `${"human" | "judge" | "jury" | "reward"}:${string}`;

/** Leads from a figure to the items that it counts. */
export function ItemsLink({ search, children }: { search: ItemsSearch; children: ReactNode }) {
  const evaluation = useContext(Evaluation);
  if (evaluation === null) return children;
  return (
    <To evaluation={evaluation} search={search}>
      {children}
    </To>
  );
}

function To({
  evaluation,
  search,
  children,
}: {
  evaluation: string;
  search: ItemsSearch;
  children: ReactNode;
}) {
  return (
    <Link
      to="/p/$project/evaluations/$evaluation"
      params={{ project: useProject(), evaluation }}
      search={{ tab: "items", ...search }}
      inherit
      c="inherit"
      underline="never"
      className="items-link"
      title="Show the items"
    >
      {children}
    </Link>
  );
}

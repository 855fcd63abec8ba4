import { useMemo } from "react";
import type { CurveRun, RunGroup } from "./curveLines";
import { type Grouping, groupingsOf, groupsOf, type RunTraits } from "./groupings";
import { useColorPlaces } from "./useColorPlaces";

const NO_GROUPS: ReadonlyMap<string, number[]> = new Map();

/**
 * The ways to put several runs into groups, and the groups of the way that was asked for, if these runs have it. A group keeps its colour as long as the page is open.
 */
export function useRunGroups(
  runs: readonly CurveRun[],
  traits: readonly RunTraits[] | undefined,
  asked: string | null,
): { groupings: Grouping[]; groupBy: string | null; groups: RunGroup[] | undefined } {
  const groupings = useMemo(() => (traits ? groupingsOf(traits) : []), [traits]);
  const groupBy = groupings.some(({ by }) => by === asked) ? asked : null;
  const places = useMemo(
    () => (traits && groupBy ? groupsOf(traits, groupBy) : NO_GROUPS),
    [traits, groupBy],
  );
  const colors = useColorPlaces([...places.keys()]);
  const groups = useMemo(
    () =>
      groupBy
        ? [...places].map(([label, at]) => ({
            label,
            color: colors.get(label) ?? 0,
            runs: at.flatMap((place) => runs[place] ?? []),
          }))
        : undefined,
    [groupBy, places, colors, runs],
  );
  return { groupings, groupBy, groups };
}

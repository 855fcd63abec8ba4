import { useInfiniteQuery, useQueries, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import {
  type Sample,
  sampleBlockQuery,
  sampleCountQuery,
  type SampleFilters,
  samplesQuery,
} from "../../../api/datasets/datasets";

const BLOCK = 100;

export interface Rows {
  /** How many can be scrolled to. */
  total: number;
  /** How many there are in all; a lower bound where `exact` is false. */
  count: { rows: number; exact: boolean } | undefined;
  /** Undefined while it is on its way. */
  at: (place: number) => Sample | undefined;
  /** Whether the place of a row in the table is its number in the dataset. */
  numbered: boolean;
  error: Error | null;
  loading: boolean;
  retry: () => void;
}

/** Rows of a table by their place, fetched as the window [first, end) moves over them. */
export function useRows(
  project: string,
  dataset: { name: string; rows: number },
  filters: SampleFilters,
  first: number,
  end: number,
): Rows {
  const filtered = Object.values(filters).some((value) => value !== undefined);
  const blocks: number[] = [];
  if (!filtered) {
    for (let block = Math.floor(first / BLOCK); block * BLOCK < Math.min(end, dataset.rows); block += 1) {
      blocks.push(block);
    }
  }
  const jumping = useQueries({
    queries: blocks.map((block) => sampleBlockQuery(project, dataset.name, block * BLOCK, BLOCK)),
  });
  const matching = useInfiniteQuery({ ...samplesQuery(project, dataset.name, filters), enabled: filtered });
  const counted = useQuery({ ...sampleCountQuery(project, dataset.name, filters), enabled: filtered });
  const found = filtered ? (matching.data?.pages.flatMap((page) => page.items) ?? []) : [];
  const { hasNextPage, isFetching, fetchNextPage } = matching;
  const loaded = found.length;
  useEffect(() => {
    if (filtered && end >= loaded && hasNextPage && !isFetching) void fetchNextPage();
  }, [filtered, end, loaded, hasNextPage, isFetching, fetchNextPage]);

  if (filtered) {
    return {
      total: hasNextPage ? loaded + 1 : loaded,
      count: counted.data,
      at: (place) => found[place],
      numbered: false,
      error: matching.error,
      loading: matching.isPending,
      retry: () => void matching.refetch(),
    };
  }
  const byBlock = new Map(blocks.map((block, at) => [block, jumping[at]?.data?.items]));
  return {
    total: dataset.rows,
    count: { rows: dataset.rows, exact: true },
    at: (place) => byBlock.get(Math.floor(place / BLOCK))?.[place % BLOCK],
    numbered: true,
    error: jumping.find((query) => query.error)?.error ?? null,
    loading: false,
    retry: () => jumping.forEach((query) => void query.refetch()),
  };
}

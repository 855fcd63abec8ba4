import { useDebouncedCallback } from "@mantine/hooks";
import { type QueryKey, useQueries, useQuery, type UseQueryOptions } from "@tanstack/react-query";
import { useState } from "react";

interface Page<T> {
  items: T[];
  next?: string | null;
}

const DEBOUNCE_MS = 200;
/** Searches whose results are kept: what was found for one field may be chosen in another. */
const KEPT = 20;
/** Between a name and what a picker shows of it. */
export const AFTER_NAME = " · ";

interface Options {
  /** Names that a form has already. */
  chosen?: (string | null | undefined)[];
  enabled?: boolean;
}

/**
 * Things of a project to choose from: the newest, those whose names contain what a person types, and the chosen ones. The
 * server is asked for the others only where it has not sent all.
 */
export function useByName<T extends { id: string; name: string }, K extends QueryKey>(
  queryOf: (name?: string) => UseQueryOptions<Page<T>, Error, Page<T>, K>,
  { chosen = [], enabled = true }: Options = {},
) {
  const [typed, setTyped] = useState<string[]>([]);
  const query = useQuery({ ...queryOf(), enabled });
  const newest = query.data?.items ?? [];
  const missing = chosen.filter((name) => !!name && !newest.some((one) => one.name === name)) as string[];
  const asked = query.data?.next ? [...new Set([...missing, ...typed])] : [];
  const found = useQueries({ queries: asked.map((name) => ({ ...queryOf(name), enabled })) });
  const items = new Map(
    [...newest, ...found.flatMap((one) => one.data?.items ?? [])].map((one) => [one.id, one]),
  );
  const onSearchChange = useDebouncedCallback((text: string) => {
    const part = text.split(AFTER_NAME)[0]!.trim();
    if (part) setTyped((old) => [part, ...old.filter((one) => one !== part)].slice(0, KEPT));
  }, DEBOUNCE_MS);
  return { query, data: query.data && [...items.values()], onSearchChange };
}

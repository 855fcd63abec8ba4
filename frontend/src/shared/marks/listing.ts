import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data } from "../../api/client";
import type { Marked } from "../../api/marks";
import { listOf, textOf } from "../search";

/** What a list of named things is narrowed to, as its address has it. */
export interface ListSearch {
  /** A part of the name, a tag or the notes. */
  search?: string;
  tag?: string[];
  favourite?: boolean;
  archived?: boolean;
  /** A dataset's kind, a model's role. */
  sort?: string;
}

const flag = (value: unknown) => value === true || value === "true" || undefined;

export function listSearch(search: Record<string, unknown>): ListSearch {
  return {
    search: textOf(search.search),
    tag: listOf(search.tag),
    favourite: flag(search.favourite),
    archived: flag(search.archived),
    sort: textOf(search.sort),
  };
}

interface Page<T> {
  items: T[];
  next?: string | null;
}

export type PageQuery = Omit<ListSearch, "sort"> & { cursor?: string; limit: number };

const LIMIT = 50;

/** A list of named things, a page at a time, narrowed by `search`. */
export const listingQuery = <T>(
  project: string,
  type: Marked,
  search: ListSearch,
  load: (query: PageQuery) => Promise<Page<T>>,
) =>
  infiniteQueryOptions({
    queryKey: [project, `${type}s`, "listed", search],
    queryFn: ({ pageParam }) => {
      const { search: part, tag, favourite, archived } = search;
      return load({ search: part, tag, favourite, archived, cursor: pageParam, limit: LIMIT });
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: keepPreviousData,
  });

/** The marks of the things in a list, by id. */
export const listedMarksQuery = (project: string, type: Marked, ids: string[]) =>
  queryOptions({
    queryKey: [project, "marks", type, "listed", ids],
    queryFn: () =>
      data(
        api.GET("/api/v1/projects/{project}/marks/{type}", {
          params: { path: { project, type }, query: { id: ids } },
        }),
      ),
    enabled: ids.length > 0,
    placeholderData: keepPreviousData,
  });

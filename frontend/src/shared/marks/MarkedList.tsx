import { Button, Chip, Group, MultiSelect, Select, Stack, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useInfiniteQuery, useQueries, useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { type Marked, type Marks, tagsQuery } from "../../api/marks";
import { Empty, Loaded } from "../Feedback";
import { More } from "../More";
import { listedMarksQuery, listingQuery, type ListSearch, type PageQuery } from "./listing";
import { MarksContext } from "./NameCell";

const DEBOUNCE_MS = 250;

interface Properties<T> {
  project: string;
  type: Marked;
  search: ListSearch;
  onSearch: (search: ListSearch) => void;
  load: (query: PageQuery) => Promise<{ items: T[]; next?: string | null }>;
  /** What sorts them: a dataset's kind, a model's role. */
  sort?: { name: string; all: string[] };
  /** What is shown where the project has none. */
  none: ReactNode;
  children: (items: T[]) => ReactNode;
}

/** Things with names, narrowed by the server; all that narrows them is in the address. */
export function MarkedList<T extends { id: string }>(properties: Properties<T>) {
  const { project, type, search, onSearch, load, sort, none, children } = properties;
  const query = useInfiniteQuery(listingQuery(project, type, search, load));
  const tags = useQuery(tagsQuery(project, type));
  const pages = query.data?.pages ?? [];
  const items = pages.flatMap((page) => page.items);
  const ids = pages.map((page) => page.items.map((one) => one.id));
  const marks = useQueries({
    queries: ids.map((page) => listedMarksQuery(project, type, page)),
    combine: together,
  });
  const [part, setPart] = useState(search.search ?? "");
  const ask = useDebouncedCallback(
    (text: string) => onSearch({ ...search, search: text.trim() || undefined }),
    DEBOUNCE_MS,
  );
  const narrowed = Object.values(search).some(Boolean);
  const showAll = () => {
    setPart("");
    onSearch({});
  };
  return (
    <Loaded query={query}>
      {() =>
        !items.length && !narrowed ? (
          none
        ) : (
          <Stack gap="sm">
            <Group gap="sm">
              <TextInput
                aria-label="Search names, tags and notes"
                placeholder="Search names, tags and notes"
                leftSection={<IconSearch size={16} />}
                value={part}
                w={{ base: "100%", xs: 280 }}
                onChange={(event) => {
                  setPart(event.currentTarget.value);
                  ask(event.currentTarget.value);
                }}
              />
              {sort && (
                <Select
                  aria-label={sort.name}
                  placeholder={`any ${sort.name.toLowerCase()}`}
                  data={sort.all}
                  value={search.sort ?? null}
                  onChange={(value) => onSearch({ ...search, sort: value ?? undefined })}
                  clearable
                  w={{ base: "100%", xs: 160 }}
                />
              )}
              {(!!tags.data?.length || !!search.tag) && (
                <MultiSelect
                  aria-label="Tags"
                  placeholder={search.tag ? "" : "any tag"}
                  data={[...new Set([...(search.tag ?? []), ...(tags.data ?? []).map((one) => one.tag)])]}
                  value={search.tag ?? []}
                  onChange={(chosen) => onSearch({ ...search, tag: chosen.length ? chosen : undefined })}
                  searchable
                  hidePickedOptions
                  miw={160}
                />
              )}
              <Chip
                checked={!!search.favourite}
                onChange={(on) => onSearch({ ...search, favourite: on || undefined })}
              >
                Favourites
              </Chip>
              <Chip
                checked={!!search.archived}
                onChange={(on) => onSearch({ ...search, archived: on || undefined })}
              >
                Archived
              </Chip>
            </Group>
            {items.length ? (
              <MarksContext value={{ project, type, marks }}>{children(items)}</MarksContext>
            ) : (
              <Empty
                title="No matches"
                action={
                  <Button variant="default" onClick={showAll}>
                    Show all
                  </Button>
                }
              />
            )}
            <More query={query} />
          </Stack>
        )
      }
    </Loaded>
  );
}

/** The marks of all pages, each asked for once. */
const together = (pages: { data: Record<string, Marks> | undefined }[]): Record<string, Marks> =>
  Object.assign({}, ...pages.map((page) => page.data));

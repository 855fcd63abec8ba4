import type { Notice } from "../../api/noticeFeed";

/** As the server counts them: to 100. */
export const counted = (count: number): string => (count >= 100 ? "99+" : String(count));

/** The id of the newest notice in these lists, as the query cache has them. */
export function newest(lists: (readonly [unknown, unknown])[]): number | null {
  const ids = lists.flatMap(([, data]) =>
    ((data as { pages: { items: Notice[] }[] } | undefined)?.pages ?? []).flatMap((page) =>
      page.items.map((notice) => notice.id),
    ),
  );
  return ids.length ? Math.max(...ids) : null;
}

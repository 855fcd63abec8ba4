import { Badge, Group, Text } from "@mantine/core";
import { getRouteApi } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import type { Item } from "../../../api/evaluation/items";
import { count, signed } from "../../../shared/format/format";
import { Link } from "../../../shared/links";
import { More } from "../../../shared/More";
import type { ItemsSearch } from "../../../shared/search";
import { COLORS, keyOf, preferred } from "./sources";

const route = getRouteApi("/p/$project/evaluations/$evaluation");

interface Properties {
  query: Parameters<typeof More>[0]["query"];
  items: Item[];
  filters: ItemsSearch;
  shown: number | undefined;
}

/** Every item that fits, in a line or two. */
export function ItemList({ query, items, filters, shown }: Properties) {
  const current = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    void current.current?.scrollIntoView({ block: "nearest" });
  }, [shown]);
  return (
    <nav aria-label="Items">
      {items.map((item) => {
        const here = item.position === shown;
        return (
          <Link
            key={item.position}
            ref={here ? current : undefined}
            from={route.id}
            to="."
            search={{ tab: "items", ...filters, item: item.position }}
            replace
            resetScroll={false}
            underline="never"
            className="items-row"
            data-shown={here || undefined}
            aria-current={here ? "true" : undefined}
          >
            <Group gap={6} justify="space-between" wrap="nowrap">
              <Text size="xs" c="dimmed" truncate>
                {item.position + 1} · id {item.question_id}
              </Text>
              <Outcome item={item} filters={filters} />
            </Group>
            <Text size="sm" lineClamp={2} style={{ overflowWrap: "anywhere" }}>
              {item.text || "(empty)"}
            </Text>
            {item.scores.length > 0 && (
              <Text size="xs" c="dimmed">
                score {item.scores.map((one) => (one === null ? "none" : signed(one))).join(" / ")}
              </Text>
            )}
            {item.lengths.length === 2 && (
              <Text size="xs" c="dimmed">
                {item.lengths.map((one) => (one === null ? "no answer" : count(Math.round(one)))).join(" / ")}{" "}
                characters
              </Text>
            )}
          </Link>
        );
      })}
      <More query={query} />
    </nav>
  );
}

/** The outcome by the source that the items are filtered by. */
function Outcome({ item, filters: { a, b, source } }: { item: Item; filters: ItemsSearch }) {
  const found = item.outcomes.find((one) => keyOf(one) === source);
  if (!found || !a || !b) return null;
  return (
    <Badge
      size="sm"
      color={COLORS[found.outcome]}
      className="state-badge"
      style={{ flexShrink: 0, maxWidth: 130 }}
    >
      {preferred(found, a, b)}
    </Badge>
  );
}

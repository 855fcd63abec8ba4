import { Button, Group, Text } from "@mantine/core";
import { useHotkeys, useMediaQuery } from "@mantine/hooks";
import { IconArrowLeft } from "@tabler/icons-react";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { Evaluation } from "../../../api/evaluation/evaluations";
import { itemQuery, itemsQuery } from "../../../api/evaluation/items";
import { Empty, Loaded } from "../../../shared/Feedback";
import { counted } from "../../../shared/format/format";
import type { ItemsSearch } from "../../../shared/search";
import { ItemFilters } from "./ItemFilters";
import { ItemList } from "./ItemList";
import { ItemView } from "./ItemView";
import { possible } from "./possible";
import "./items.css";

const route = getRouteApi("/p/$project/evaluations/$evaluation");

/** The prompts behind the figures of the report, filtered, and one of them with all assessments of it. */
export function ItemsTab({ project, evaluation }: { project: string; evaluation: Evaluation }) {
  const { a, b, source, other, outcome, category, length, sort, item } = route.useSearch();
  const navigate = route.useNavigate();
  const wide = useMediaQuery("(min-width: 62em)", true, { getInitialValueInEffect: false });
  const filters = possible({ a, b, source, other, outcome, category, length, sort });
  const query = useInfiniteQuery(itemsQuery(project, evaluation.id, filters));
  const items = query.data?.pages.flatMap((page) => page.items) ?? [];
  const page = query.data?.pages[0];
  // On a wide screen the first is next to the list; a narrow one begins with the list.
  const shown = item ?? (wide ? items[0]?.position : undefined);
  const detail = useQuery({
    ...itemQuery(project, evaluation.id, shown ?? 0, filters),
    enabled: shown !== undefined,
  });
  const open = (change: ItemsSearch & { call?: number }) =>
    void navigate({
      search: { tab: "items", ...filters, item, ...change },
      replace: true,
      resetScroll: false,
    });
  const step = (to: "previous" | "next") => {
    const position = detail.isPlaceholderData ? null : detail.data?.[to];
    if (position !== null && position !== undefined) open({ item: position });
  };
  useHotkeys([
    ["j", () => step("next")],
    ["k", () => step("previous")],
    ["ArrowRight", () => step("next")],
    ["ArrowLeft", () => step("previous")],
  ]);
  const filtered = Object.entries(filters).some(([name, value]) => name !== "sort" && value !== undefined);
  const list = (
    <Loaded query={query} rows={4}>
      {() =>
        items.length ? (
          <ItemList query={query} items={items} filters={filters} shown={shown} />
        ) : (
          <Empty
            title="No items fit"
            action={
              filtered && (
                <Button
                  size="xs"
                  variant="default"
                  onClick={() => void navigate({ search: { tab: "items" } })}
                >
                  Remove the filters
                </Button>
              )
            }
          >
            {page?.sources.length
              ? "No prompt has this outcome."
              : "No people, judge or reward model has assessed the answers yet."}
          </Empty>
        )
      }
    </Loaded>
  );
  const view = shown !== undefined && (
    <Loaded query={detail} rows={5}>
      {(found) => (
        <ItemView project={project} evaluation={evaluation} found={found} filters={filters} onStep={step} />
      )}
    </Loaded>
  );
  return (
    <>
      <ItemFilters
        evaluation={evaluation}
        filters={filters}
        page={page}
        onChange={(changed) =>
          void navigate({ search: { tab: "items", ...changed }, replace: true, resetScroll: false })
        }
      />
      <Group justify="space-between" my="sm">
        <Text size="sm" c="dimmed" role="status">
          {page ? counted(page.total, "item") : "Looking for items"}
          {wide && page?.total ? "; next and previous by j and k, or by arrows" : ""}
        </Text>
        {!wide && item !== undefined && (
          <Button
            size="xs"
            variant="default"
            leftSection={<IconArrowLeft size={14} />}
            onClick={() => open({ item: undefined })}
          >
            All items
          </Button>
        )}
      </Group>
      {wide ? (
        <div className="items-panes">
          <div className="items-list" tabIndex={-1}>
            {list}
          </div>
          <div className="items-view">{view}</div>
        </div>
      ) : item === undefined ? (
        list
      ) : (
        <div className="items-view">{view}</div>
      )}
    </>
  );
}

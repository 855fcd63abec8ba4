import { Button, Group, MultiSelect, Select } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "../../../api/accounts/session";
import { Problem } from "../../../api/client";
import { pipelinesQuery } from "../../../api/runs/pipelines";
import { runKindsQuery } from "../../../api/runs/runKinds";
import { type RunFilters, runsQuery, runTableHref } from "../../../api/runs/runs";
import { Empty, Failure, Loaded } from "../../../shared/Feedback";
import { useByName } from "../../../shared/forms/useByName";
import { LinkButton } from "../../../shared/links";
import { More } from "../../../shared/More";
import { Page } from "../../../shared/Page";
import type { RunsSearch } from "../../../shared/search";
import { ColumnsButton } from "./ColumnsButton";
import { FilterBox } from "./FilterBox";
import { ImportHistory } from "./ImportHistory";
import { RunRows } from "./RunRows";
import { SelectionBar } from "./SelectionBar";
import { askedOf, DEFAULT, fileColumns, othersOf } from "./tableLayout";
import { useTableLayout } from "./useTableLayout";
import { ViewsMenu } from "../../../shared/views/ViewsMenu";
import { runViews, type RunViewQuery } from "../../../api/views";

const route = getRouteApi("/p/$project/runs");
const STATES = ["pending", "queued", "running", "succeeded", "failed", "cancelled", "skipped", "paused"];
const NEWEST = "-created";
const OWN_VIEWS = [
  ["All runs", ""],
  ["Favourites", "is:favourite"],
  ["Failed", "state:failed"],
  ["Archived", "is:archived"],
].map(([label, filter]): [string, RunViewQuery] => [
  label!,
  { filter: filter!, sort: NEWEST, columns: [], widths: {} },
]);
const HALF = { base: "calc(50% - 6px)", xs: 200 };

export function RunsPage() {
  const { project } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const { layout, change: changeLayout } = useTableLayout(
    project,
    search,
    (change, replace) =>
      void navigate({ search: (old) => ({ ...old, ...change }), replace, resetScroll: false }),
  );
  const { state, kind, pipeline, filter, sort } = search;
  const filters = { state, kind, pipeline, filter, sort } as RunFilters;
  // In the order of their names: another order of columns asks for nothing new.
  const column = othersOf(layout.columns).sort();
  const runs = useInfiniteQuery({
    ...runsQuery(project, { ...filters, column: column.length ? column : undefined }),
    // A mistake in the filter does not go away by asking again.
    retry: (times, error) =>
      times < 3 && !(error instanceof Problem && error.status < 500 && error.status > 0),
  });
  const mayRun = useMay(project, "run");
  const narrowed = Boolean(search.state ?? search.kind ?? search.pipeline ?? search.filter);
  // Without a run there is nothing to narrow down or to compare.
  const none = !narrowed && runs.data?.pages[0]?.items.length === 0;
  const mistaken = runs.error instanceof Problem && runs.error.code === "bad_filter" ? runs.error : null;
  const inFilter = mistaken?.places[0]?.location.startsWith("filter");
  const show = (change: Partial<RunsSearch>) => {
    setChosen(new Set());
    void navigate({ search: (old) => ({ ...old, ...change }) });
  };
  // What a filter that is half written leaves in sight.
  const pages = runs.isPlaceholderData ? undefined : runs.data?.pages;
  const [lastPages, setLastPages] = useState(pages);
  if (pages && pages !== lastPages) setLastPages(pages);
  const last = lastPages?.flatMap((page) => page.items) ?? [];
  const view: RunViewQuery = {
    filter: search.filter ?? "",
    sort: search.sort ?? NEWEST,
    columns: askedOf(layout.columns) ?? ["name", ...layout.columns],
    widths: layout.widths,
  };

  return (
    <Page title="Runs" actions={mayRun && <ImportHistory project={project} />}>
      {!none && (
        <>
          <FilterBox
            project={project}
            filter={search.filter ?? ""}
            error={mistaken}
            onFilter={(filter) => show({ filter: filter || undefined })}
          />
          <Group align="flex-end" gap="sm">
            <Narrowing project={project} search={search} onShow={show} />
            <ColumnsButton project={project} layout={layout} onLayout={changeLayout} />
            <ViewsMenu
              views={runViews(project)}
              mayChange={mayRun}
              own={OWN_VIEWS}
              words={({ filter }) => filter || "all runs"}
              about="Keeps the filter, the order, the columns and their widths for everyone in the project"
              example="good-rewards"
              query={view}
              onView={({ filter, sort, columns, widths }) => {
                setChosen(new Set());
                void navigate({
                  search: (old) => ({
                    filter: filter || undefined,
                    sort: sort === NEWEST ? undefined : sort,
                    // The views that every project has leave the columns as they are.
                    column: columns?.length ? columns : old.column,
                    width: columns?.length ? widths : old.width,
                  }),
                });
              }}
            />
            <Button
              component="a"
              variant="default"
              leftSection={<IconDownload size={16} />}
              href={runTableHref(project, { ...filters, column: fileColumns(layout.columns) })}
              download
            >
              Export CSV
            </Button>
          </Group>
        </>
      )}
      {mistaken ? (
        inFilter ? (
          last.length > 0 && (
            <div className="outdated" inert>
              <RunRows
                runs={last}
                layout={layout}
                onLayout={() => undefined}
                sort={search.sort ?? NEWEST}
                onSort={() => undefined}
                chosen={chosen}
                onChoose={() => undefined}
              />
            </div>
          )
        ) : (
          <>
            <Failure error={mistaken} />
            <Button
              variant="default"
              onClick={() => {
                changeLayout(DEFAULT);
                show({ sort: undefined, column: undefined, width: undefined });
              }}
            >
              Show the newest first, without columns
            </Button>
          </>
        )
      ) : (
        <Loaded query={runs} rows={10}>
          {(data) => {
            const items = data.pages.flatMap((page) => page.items);
            if (!items.length)
              return (
                <NoRuns
                  project={project}
                  narrowed={narrowed}
                  mayRun={mayRun}
                  onAll={() => void navigate({ search: {} })}
                />
              );
            return (
              <>
                <RunRows
                  runs={items}
                  layout={layout}
                  onLayout={changeLayout}
                  sort={search.sort ?? NEWEST}
                  onSort={(sort) => show({ sort: sort === NEWEST ? undefined : sort })}
                  chosen={chosen}
                  onChoose={(ids, on) =>
                    setChosen((before) => {
                      const after = new Set(before);
                      for (const id of ids) {
                        if (on) after.add(id);
                        else after.delete(id);
                      }
                      return after;
                    })
                  }
                />
                <More query={runs} />
                {chosen.size > 0 && (
                  <SelectionBar
                    project={project}
                    chosen={chosen}
                    archived={items.some((run) => chosen.has(run.id) && run.marks.archived_at)}
                    onChosen={setChosen}
                  />
                )}
              </>
            );
          }}
        </Loaded>
      )}
    </Page>
  );
}

function Narrowing({
  project,
  search,
  onShow,
}: {
  project: string;
  search: RunsSearch;
  onShow: (change: Partial<RunsSearch>) => void;
}) {
  const pipelines = useByName((name) => pipelinesQuery(project, name));
  const kinds = useQuery(runKindsQuery(project));
  const kindNames = [...new Set(kinds.data?.flatMap((one) => [one.kind, ...one.parts]) ?? search.kind)];
  const names = pipelines.data?.map((one) => one.name) ?? [];
  return (
    <>
      <MultiSelect
        label="State"
        placeholder={search.state ? "" : "any"}
        data={STATES}
        value={search.state ?? []}
        clearable
        w={HALF}
        onChange={(state) => onShow({ state: state.length ? state : undefined })}
      />
      <MultiSelect
        label="Kind"
        placeholder={search.kind ? "" : "any"}
        data={kindNames}
        value={search.kind ?? []}
        clearable
        w={HALF}
        onChange={(kind) => onShow({ kind: kind.length ? kind : undefined })}
      />
      <Select
        label="Pipeline"
        placeholder="any"
        // Older ones than the list has come by their address.
        data={search.pipeline && !names.includes(search.pipeline) ? [search.pipeline, ...names] : names}
        value={search.pipeline ?? null}
        clearable
        searchable
        onSearchChange={pipelines.onSearchChange}
        nothingFoundMessage="No matching pipelines"
        w={HALF}
        onChange={(pipeline) => onShow({ pipeline: pipeline ?? undefined })}
      />
    </>
  );
}

function NoRuns({
  project,
  narrowed,
  mayRun,
  onAll,
}: {
  project: string;
  narrowed: boolean;
  mayRun: boolean;
  onAll: () => void;
}) {
  return (
    <Empty
      title={narrowed ? "No run matches these filters" : "No runs yet"}
      action={
        narrowed ? (
          <Button variant="default" onClick={onAll}>
            Show all
          </Button>
        ) : (
          mayRun && (
            <LinkButton component="a" to="/p/$project/launch" params={{ project }} search={{}}>
              Launch
            </LinkButton>
          )
        )
      }
    >
      {narrowed
        ? "Remove a filter to see more."
        : "Launch a recipe or a single run; it shows up here immediately."}
    </Empty>
  );
}

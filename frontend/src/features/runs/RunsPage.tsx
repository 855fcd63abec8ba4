import { Button, Group, MultiSelect, Select } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { pipelinesQuery } from "../../api/runs/pipelines";
import { runKindsQuery } from "../../api/runs/runKinds";
import { type RunFilters, runsQuery } from "../../api/runs/runs";
import { useMay } from "../../api/accounts/session";
import { Empty, Loaded } from "../../shared/Feedback";
import { LinkButton } from "../../shared/links";
import { Page } from "../../shared/Page";
import { RunsTable } from "../../shared/tables/RunsTable";
import { More } from "../../shared/More";
import { useByName } from "../../shared/forms/useByName";

const route = getRouteApi("/p/$project/runs");
const STATES = ["pending", "queued", "running", "succeeded", "failed", "cancelled", "skipped", "paused"];

export function RunsPage() {
  const { project } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const runs = useInfiniteQuery(runsQuery(project, search as RunFilters));
  const pipelines = useByName((name) => pipelinesQuery(project, name));
  const kinds = useQuery(runKindsQuery(project));
  const kindNames = [...new Set(kinds.data?.flatMap((one) => [one.kind, ...one.parts]) ?? search.kind)];
  const names = pipelines.data?.map((one) => one.name) ?? [];
  const filtered = Boolean(search.state ?? search.kind ?? search.pipeline);
  const mayRun = useMay(project, "run");
  // Without a run there is nothing to narrow down or to compare.
  const none = !filtered && runs.data?.pages[0]?.items.length === 0;

  const choose = (run: string, on: boolean) =>
    setChosen((before) => {
      const after = new Set(before);
      if (on) after.add(run);
      else after.delete(run);
      return after;
    });

  return (
    <Page
      title="Runs"
      actions={
        !!runs.data &&
        !none && (
          <Button
            disabled={chosen.size < 2}
            onClick={() =>
              void navigate({ to: "/p/$project/compare", params: { project }, search: { runs: [...chosen] } })
            }
          >
            {chosen.size >= 2 ? `Compare ${chosen.size}` : "Select two to compare"}
          </Button>
        )
      }
    >
      <Group align="flex-end" gap="sm" display={none ? "none" : undefined}>
        <MultiSelect
          label="State"
          placeholder={search.state ? "" : "any"}
          data={STATES}
          value={search.state ?? []}
          clearable
          w={{ base: "100%", xs: 260 }}
          onChange={(state) =>
            void navigate({ search: (old) => ({ ...old, state: state.length ? state : undefined }) })
          }
        />
        <MultiSelect
          label="Kind"
          placeholder={search.kind ? "" : "any"}
          data={kindNames}
          value={search.kind ?? []}
          clearable
          w={{ base: "100%", xs: 260 }}
          onChange={(kind) =>
            void navigate({ search: (old) => ({ ...old, kind: kind.length ? kind : undefined }) })
          }
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
          nothingFoundMessage="No pipeline has that name"
          w={{ base: "100%", xs: 260 }}
          onChange={(pipeline) =>
            void navigate({ search: (old) => ({ ...old, pipeline: pipeline ?? undefined }) })
          }
        />
      </Group>
      <Loaded query={runs} rows={10}>
        {(data) => {
          const items = data.pages.flatMap((page) => page.items);
          if (!items.length) {
            return (
              <Empty
                title={filtered ? "No run matches these filters" : "No runs yet"}
                action={
                  filtered ? (
                    <Button variant="default" onClick={() => void navigate({ search: {} })}>
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
                {filtered
                  ? "Remove a filter to see more."
                  : "Launch a recipe or a single run; it shows up here immediately."}
              </Empty>
            );
          }
          return (
            <>
              <RunsTable runs={items} chosen={chosen} onChoose={choose} label="Runs, the newest first" />
              <More query={runs} />
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

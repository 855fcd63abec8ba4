import { Button, Center, Group, MultiSelect } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { runsQuery, type RunFilters } from "../../api/runs";
import { Empty, Loaded } from "../../shared/Feedback";
import { Page } from "../../shared/Page";
import { RunsTable } from "../../shared/RunsTable";

const route = getRouteApi("/p/$project/runs");
const STATES = ["pending", "queued", "running", "succeeded", "failed", "cancelled"];
const KINDS = ["base", "train", "generate", "mix", "score", "evaluate"];

export function RunsPage() {
  const { project } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const runs = useInfiniteQuery(runsQuery(project, search as RunFilters));
  const filtered = Boolean(search.state ?? search.kind);

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
        <Button
          disabled={chosen.size < 2}
          onClick={() =>
            void navigate({ to: "/p/$project/compare", params: { project }, search: { runs: [...chosen] } })
          }
        >
          Compare {chosen.size >= 2 ? chosen.size : ""}
        </Button>
      }
    >
      <Group align="flex-end" gap="sm">
        <MultiSelect
          label="State"
          placeholder={search.state ? "" : "any"}
          data={STATES}
          value={search.state ?? []}
          clearable
          w={260}
          onChange={(state) =>
            void navigate({ search: (old) => ({ ...old, state: state.length ? state : undefined }) })
          }
        />
        <MultiSelect
          label="Kind"
          placeholder={search.kind ? "" : "any"}
          data={KINDS}
          value={search.kind ?? []}
          clearable
          w={260}
          onChange={(kind) =>
            void navigate({ search: (old) => ({ ...old, kind: kind.length ? kind : undefined }) })
          }
        />
      </Group>
      <Loaded query={runs} rows={10}>
        {(data) => {
          const items = data.pages.flatMap((page) => page.items);
          if (!items.length) {
            return (
              <Empty title={filtered ? "No run matches these filters" : "No runs yet"}>
                {filtered
                  ? "Take a filter away to see more."
                  : "Launch a recipe or a single run; it shows up here at once."}
              </Empty>
            );
          }
          return (
            <>
              <RunsTable runs={items} chosen={chosen} onChoose={choose} label="Runs, the newest first" />
              {runs.hasNextPage && (
                <Center>
                  <Button
                    variant="default"
                    loading={runs.isFetchingNextPage}
                    onClick={() => void runs.fetchNextPage()}
                  >
                    Show more
                  </Button>
                </Center>
              )}
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

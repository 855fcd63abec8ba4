import { Alert, Badge, Card, Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { Schemas } from "../../../api/client";
import {
  type Change,
  differenceQuery,
  type DifferentRow,
  differentRowsQuery,
} from "../../../api/datasets/differences";
import { Empty, Loaded } from "../../../shared/Feedback";
import { count, counted } from "../../../shared/format/format";
import { Link } from "../../../shared/links";
import { More } from "../../../shared/More";
import { SampleDifference, WholeSample } from "./SampleDifference";

type Dataset = Schemas["DatasetOut"];

const route = getRouteApi("/p/$project/datasets/$dataset");
const CHANGES: Change[] = ["changed", "removed", "added"];
const COLORS: Record<Change, string> = { added: "teal", removed: "red", changed: "yellow" };

/** What changed from `before` to this dataset: how many rows, and each of them. */
export function DifferenceView({
  project,
  dataset,
  before,
}: {
  project: string;
  dataset: Dataset;
  before: string;
}) {
  const { change } = route.useSearch();
  const navigate = route.useNavigate();
  const query = useQuery(differenceQuery(project, dataset.name, before));
  return (
    <section aria-label={`From ${before} to ${dataset.name}`}>
      <Loaded query={query} rows={3}>
        {(found) => {
          const differ = found.added + found.removed + found.changed;
          if (!differ)
            return (
              <Empty title="No row differs">
                {counted(found.same, "row")} of {before} and {dataset.name} are the same.
              </Empty>
            );
          return (
            <Stack>
              <Group justify="space-between">
                <SegmentedControl
                  aria-label="Which rows"
                  value={change ?? "all"}
                  onChange={(value) =>
                    void navigate({
                      search: (old) => ({ ...old, change: value === "all" ? undefined : (value as Change) }),
                      replace: true,
                      resetScroll: false,
                    })
                  }
                  data={[
                    { value: "all", label: `All ${count(differ)}` },
                    ...CHANGES.map((one) => ({
                      value: one,
                      label: `${count(found[one])} ${one}`,
                      disabled: !found[one],
                    })),
                  ]}
                />
                <Text size="sm" c="dimmed">
                  {counted(found.same, "row")} the same
                </Text>
              </Group>
              {found.by === "content" && (
                <Alert variant="light" color="gray">
                  These are not versions of one dataset, so their rows are matched by content: equal rows
                  first, then rows with the same prompt, then rows of which only the prompt differs.
                </Alert>
              )}
              <DifferentRows project={project} dataset={dataset} before={before} change={change} />
            </Stack>
          );
        }}
      </Loaded>
    </section>
  );
}

function DifferentRows({
  project,
  dataset,
  before,
  change,
}: {
  project: string;
  dataset: Dataset;
  before: string;
  change: Change | undefined;
}) {
  const query = useInfiniteQuery(differentRowsQuery(project, dataset.name, before, change));
  return (
    <Loaded query={query} rows={4}>
      {(found) => (
        <Stack gap="sm" role="list" aria-label="Rows that differ">
          {found.pages
            .flatMap((page) => page.items)
            .map((row) => (
              <Card
                key={`${row.before?.row}-${row.after?.row}`}
                withBorder
                p="sm"
                role="listitem"
                aria-label={`${row.change} row ${row.after?.row ?? row.before?.row}`}
              >
                <Group gap="xs" mb={6}>
                  <Badge className="state-badge" color={COLORS[row.change]}>
                    {row.change}
                  </Badge>
                  <Places project={project} dataset={dataset} before={before} row={row} />
                </Group>
                {row.before && row.after ? (
                  <SampleDifference before={row.before.sample} after={row.after.sample} />
                ) : (
                  <WholeSample sample={(row.before ?? row.after)!.sample} />
                )}
                {(row.before?.cut || row.after?.cut) && (
                  <Text size="xs" c="dimmed" mt={6}>
                    The row is long: only its beginning is shown and compared here.
                  </Text>
                )}
              </Card>
            ))}
          <More query={query} />
        </Stack>
      )}
    </Loaded>
  );
}

/** The row's number in each dataset, as a link to it there. */
function Places({
  project,
  dataset,
  before,
  row,
}: {
  project: string;
  dataset: Dataset;
  before: string;
  row: DifferentRow;
}) {
  const link = (name: string, at: number) => (
    <Link
      to="/p/$project/datasets/$dataset"
      params={{ project, dataset: name }}
      search={{ row: at }}
      size="sm"
      underline="always"
    >
      row {count(at)} of {name}
    </Link>
  );
  return (
    <Text size="sm" component="div" style={{ overflowWrap: "anywhere" }}>
      {row.before && link(before, row.before.row)}
      {row.before && row.after && " → "}
      {row.after && link(dataset.name, row.after.row)}
    </Text>
  );
}

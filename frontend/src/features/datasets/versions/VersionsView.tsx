import { Select, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { Schemas } from "../../../api/client";
import { type DatasetFilters, datasetsQuery } from "../../../api/datasets/datasets";
import { versionsQuery } from "../../../api/datasets/differences";
import { Loaded } from "../../../shared/Feedback";
import { count, counted } from "../../../shared/format/format";
import { useByName } from "../../../shared/forms/useByName";
import { Link } from "../../../shared/links";
import { type Column, DataTable } from "../../../shared/tables/DataTable";
import { When } from "../../../shared/When";
import { DifferenceView } from "./DifferenceView";

type Dataset = Schemas["DatasetOut"];
type Version = Schemas["Version"];

const route = getRouteApi("/p/$project/datasets/$dataset");
const MADE_BY: Record<string, string> = { cleaning: "Cleaned", edit: "Edited" };

/** The datasets that were cleaned or edited from one another, and what changed from one of them to this one. */
export function VersionsView({ project, dataset }: { project: string; dataset: Dataset }) {
  const query = useQuery(versionsQuery(project, dataset.name));
  return (
    <Loaded query={query} rows={3}>
      {(versions) => <Versions project={project} dataset={dataset} versions={versions} />}
    </Loaded>
  );
}

function Versions({
  project,
  dataset,
  versions,
}: {
  project: string;
  dataset: Dataset;
  versions: Version[];
}) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const parent = versions.find((one) => one.id === dataset.parent_id)?.name;
  const before = search.before ?? parent;
  const { data, onSearchChange } = useByName(
    (name) => datasetsQuery(project, { name, kind: [dataset.kind] as DatasetFilters["kind"] }),
    { chosen: [before] },
  );
  const family = versions.filter((one) => one.id !== dataset.id).map((one) => one.name);
  const others = (data ?? [])
    .map((one) => one.name)
    .filter((name) => name !== dataset.name && !family.includes(name));
  return (
    <Stack>
      {versions.length > 1 && <Family project={project} dataset={dataset} versions={versions} />}
      <Select
        label="Compare with"
        description={versions.length > 1 ? undefined : "No version was made of this dataset yet."}
        placeholder="a dataset of the same kind"
        maw={420}
        searchable
        clearable
        data={[
          ...(family.length ? [{ group: "Versions", items: family }] : []),
          ...(others.length ? [{ group: "Other datasets", items: others }] : []),
        ]}
        value={before ?? null}
        onSearchChange={onSearchChange}
        onChange={(name) =>
          void navigate({
            search: (old) => ({ ...old, before: name ?? undefined, change: undefined }),
            resetScroll: false,
          })
        }
      />
      {before && <DifferenceView key={before} project={project} dataset={dataset} before={before} />}
    </Stack>
  );
}

function Family({ project, dataset, versions }: { project: string; dataset: Dataset; versions: Version[] }) {
  const columns: Column<Version>[] = [
    {
      title: "Version",
      cell: (one) =>
        one.id === dataset.id ? (
          <Text size="sm" fw={650} style={{ overflowWrap: "anywhere" }}>
            {one.name} (this one)
          </Text>
        ) : (
          <Link
            to="/p/$project/datasets/$dataset"
            params={{ project, dataset: one.name }}
            search={{ view: "versions" }}
            size="sm"
            fw={550}
            style={{ overflowWrap: "anywhere" }}
          >
            {one.name}
          </Link>
        ),
    },
    { title: "Made by", wide: true, cell: (one) => madeBy(one) },
    { title: "Rows", right: true, cell: (one) => count(one.rows) },
    { title: "Dropped", right: true, wide: true, cell: (one) => (one.parent_id ? count(one.dropped) : "–") },
    { title: "Edited", right: true, wide: true, cell: (one) => (one.parent_id ? count(one.edited) : "–") },
    { title: "Created", wide: true, cell: (one) => <When at={one.created_at} /> },
  ];
  return (
    <DataTable
      label="Versions, the oldest first"
      rows={versions}
      columns={columns}
      keyOf={(one) => one.id}
      below={(one) => (
        <>
          {madeBy(one)}, {counted(one.dropped, "row")} dropped, {count(one.edited)} edited
        </>
      )}
    />
  );
}

function madeBy({ made_by, actor }: Version): string {
  const what = MADE_BY[made_by];
  if (!what) return "The first one";
  return actor ? `${what} by ${actor.replace(/^\w+:/, "")}` : what;
}

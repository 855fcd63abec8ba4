import { Button, Card, Group, Menu, Table, Tabs, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconChevronDown } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { Schemas } from "../../api/client";
import { datasetQuery, deleteDataset } from "../../api/datasets/datasets";
import { reviewQuery } from "../../api/datasets/review";
import { useMay } from "../../api/accounts/session";
import { ANSWERED } from "../../shared/campaigns/answeredKinds";
import { NewCampaign } from "../../shared/campaigns/NewCampaign";
import { ItemComments } from "../../shared/comments/ItemComments";
import { LoadedPage } from "../../shared/Feedback";
import { count } from "../../shared/format/format";
import { PushToHub } from "../../shared/forms/PushToHub";
import { HeldOutChanges } from "../../shared/HeldOutChanges";
import { Link, LinkButton } from "../../shared/links";
import { MarksPanel } from "../../shared/marks/MarksPanel";
import { PageStar } from "../../shared/marks/Star";
import { Page } from "../../shared/Page";
import { When } from "../../shared/When";
import { CleaningView } from "./cleaning/CleaningView";
import { DroppedView } from "./cleaning/DroppedView";
import { MethodsView } from "./methods/MethodsView";
import { PendingView } from "./review/PendingView";
import { pendingRows } from "./review/pendingWords";
import { SampleTable } from "./samples/SampleTable";
import { StatisticsView } from "./StatisticsView";
import { VersionsView } from "./versions/VersionsView";

const route = getRouteApi("/p/$project/datasets/$dataset");
type Dataset = Schemas["DatasetOut"];

const MADE_BY: Record<string, string> = { cleaning: "cleaned", conversion: "converted", edit: "edited" };

export function DatasetPage() {
  const { project, dataset } = route.useParams();
  const query = useQuery(datasetQuery(project, dataset));
  return (
    <LoadedPage
      title="Dataset"
      query={query}
      others={
        <Link to="/p/$project/datasets" params={{ project }}>
          All datasets
        </Link>
      }
    >
      {(found) => <DatasetView project={project} dataset={found} />}
    </LoadedPage>
  );
}

function DatasetView({ project, dataset }: { project: string; dataset: Dataset }) {
  const { view } = route.useSearch();
  const navigate = route.useNavigate();
  const madeBy = MADE_BY[dataset.origin.type as string];
  const review = useQuery(reviewQuery(project, dataset.name));
  const pending = review.data ? pendingRows(review.data) : 0;
  const lacks = !!dataset.origin.dropped && !!dataset.parent_id;
  const views = [
    "statistics",
    "methods",
    ...(dataset.kind === "preferences" ? ["cleaning"] : []),
    ...(lacks ? ["dropped"] : []),
    "versions",
    ...(pending || view === "pending" ? ["pending"] : []),
  ];
  return (
    <Page
      title={dataset.name}
      beside={<PageStar project={project} type="dataset" item={dataset.id} name={dataset.name} />}
      about={
        <>
          {count(dataset.rows)} {dataset.kind},{" "}
          {dataset.held_out_rows === dataset.rows
            ? "all held out from training"
            : `${count(dataset.held_out_rows)} held out`}
          ; created <When at={dataset.created_at} />
          {dataset.parent_id && (
            <>
              , {madeBy} from{" "}
              <Link
                underline="always"
                size="sm"
                to="/p/$project/datasets/$dataset"
                params={{ project, dataset: dataset.parent_id }}
                search={{}}
              >
                {String(dataset.origin.of)}
              </Link>
            </>
          )}
          {dataset.run_id && (
            <>
              {" "}
              by{" "}
              <Link
                underline="always"
                size="sm"
                to="/p/$project/runs/$run"
                params={{ project, run: dataset.run_id }}
              >
                its run
              </Link>
            </>
          )}
        </>
      }
      actions={<DatasetActions project={project} dataset={dataset} />}
    >
      <HeldOutChanges changes={dataset.held_out_changes} />
      <MarksPanel
        project={project}
        type="dataset"
        item={dataset.id}
        deletion={{
          name: dataset.name,
          about: "Its rows are deleted. A dataset that others refer to is kept.",
          remove: () => deleteDataset(project, dataset.id),
          onGone: () => navigate({ to: "/p/$project/datasets", params: { project } }),
        }}
      />
      <Tabs
        value={view && views.includes(view) ? view : "samples"}
        onChange={(value) =>
          void navigate({
            search: (old) => ({ ...old, view: value === "samples" ? undefined : (value as typeof view) }),
          })
        }
        keepMounted={false}
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="samples">Samples</Tabs.Tab>
          <Tabs.Tab value="statistics">Statistics</Tabs.Tab>
          <Tabs.Tab value="methods">Methods</Tabs.Tab>
          {views.includes("cleaning") && <Tabs.Tab value="cleaning">Cleaning</Tabs.Tab>}
          {views.includes("dropped") && <Tabs.Tab value="dropped">Dropped</Tabs.Tab>}
          <Tabs.Tab value="versions">Versions</Tabs.Tab>
          {views.includes("pending") && (
            <Tabs.Tab value="pending">Pending{pending > 0 && ` (${count(pending)})`}</Tabs.Tab>
          )}
        </Tabs.List>
        <Tabs.Panel value="samples">
          <SampleTable project={project} dataset={dataset} />
        </Tabs.Panel>
        <Tabs.Panel value="statistics">
          <StatisticsView project={project} dataset={dataset} />
          <Origin dataset={dataset} />
        </Tabs.Panel>
        <Tabs.Panel value="methods">
          <MethodsView project={project} dataset={dataset} />
        </Tabs.Panel>
        {dataset.kind === "preferences" && (
          <Tabs.Panel value="cleaning">
            <CleaningView project={project} dataset={dataset} />
          </Tabs.Panel>
        )}
        {lacks && (
          <Tabs.Panel value="dropped">
            <DroppedView project={project} dataset={dataset} />
          </Tabs.Panel>
        )}
        <Tabs.Panel value="versions">
          <VersionsView project={project} dataset={dataset} />
        </Tabs.Panel>
        {views.includes("pending") && (
          <Tabs.Panel value="pending">
            <PendingView project={project} dataset={dataset} />
          </Tabs.Panel>
        )}
      </Tabs>
      <ItemComments project={project} type="dataset" item={dataset.id} about="this dataset" />
    </Page>
  );
}

function DatasetActions({ project, dataset }: { project: string; dataset: Dataset }) {
  const mayRun = useMay(project, "run");
  const mayWrite = useMay(project, "write");
  const [asking, ask] = useDisclosure();
  const answered = ANSWERED.some((kind) => kind === dataset.kind);
  const exported = (format: string) =>
    `/api/v1/projects/${project}/datasets/${dataset.id}/export?format=${format}`;
  return (
    <Group gap="xs">
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" rightSection={<IconChevronDown size={16} />}>
            Download
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {["jsonl", "jsonl.gz", "parquet"].map((format) => (
            <Menu.Item key={format} component="a" href={exported(format)} download>
              {format}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      <PushToHub project={project} kind="datasets" name={dataset.name} />
      {mayWrite && answered && (
        <>
          <Button variant="default" onClick={ask.open}>
            New campaign
          </Button>
          <NewCampaign project={project} dataset={dataset.name} opened={asking} onClose={ask.close} />
        </>
      )}
      {mayRun && (
        <LinkButton
          component="a"
          to="/p/$project/launch"
          params={{ project }}
          search={{ data: dataset.name }}
        >
          Use it
        </LinkButton>
      )}
    </Group>
  );
}

function Origin({ dataset }: { dataset: Dataset }) {
  const facts = Object.entries(dataset.origin).filter(
    ([, value]) => value !== null && typeof value !== "object",
  );
  return (
    <Card withBorder mt="md">
      <Table aria-label="Origin">
        <Table.Tbody>
          {facts.map(([name, value]) => (
            <Table.Tr key={name}>
              <Table.Th scope="row">{name.replaceAll("_", " ")}</Table.Th>
              <Table.Td style={{ overflowWrap: "anywhere" }}>{String(value)}</Table.Td>
            </Table.Tr>
          ))}
          <Table.Tr>
            <Table.Th scope="row">content hash</Table.Th>
            <Table.Td>
              <Text size="sm" style={{ overflowWrap: "anywhere" }}>
                {dataset.content_hash}
              </Text>
            </Table.Td>
          </Table.Tr>
        </Table.Tbody>
      </Table>
    </Card>
  );
}

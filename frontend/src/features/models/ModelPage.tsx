import { Anchor, Badge, Card, Code, Group, SimpleGrid, Table, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { Schemas } from "../../api/client";
import { lineageQuery, modelQuery } from "../../api/data";
import { Loaded } from "../../shared/Feedback";
import { bytes, count, short, signed } from "../../shared/format";
import { Graph, type GraphNode } from "../../shared/Graph";
import { Link } from "../../shared/links";
import { Page } from "../../shared/Page";
import { When } from "../../shared/When";

type Model = Schemas["ModelDetail"];
const COLOR = { model: "helm", dataset: "orange", run: "violet" };
const FOLDER = { model: "models", dataset: "datasets", run: "runs" };

export function ModelPage() {
  const { project, model } = getRouteApi("/p/$project/models/$model").useParams();
  const query = useQuery(modelQuery(project, model));
  const lineage = useQuery(lineageQuery(project, model));
  return (
    <Loaded query={query}>
      {(found) => (
        <Page
          title={found.name}
          beside={<Badge color="gray">{found.role}</Badge>}
          about={
            <>
              {count(found.info.parameters)} parameters, {bytes(found.size)}; created{" "}
              <When at={found.created_at} />
              {found.run_id && (
                <>
                  {" "}
                  by{" "}
                  <Link
                    underline="always"
                    size="sm"
                    to="/p/$project/runs/$run"
                    params={{ project, run: found.run_id }}
                  >
                    its training run
                  </Link>
                </>
              )}
            </>
          }
        >
          <SimpleGrid cols={{ base: 1, lg: 2 }}>
            <Facts model={found as Model} />
            <Files project={project} model={found as Model} />
          </SimpleGrid>
          <section>
            <Title order={2} size="h4" mb="sm">
              Lineage
            </Title>
            <Loaded query={lineage} rows={3}>
              {(graph) => <LineageGraph project={project} lineage={graph} />}
            </Loaded>
          </section>
        </Page>
      )}
    </Loaded>
  );
}

function Facts({ model }: { model: Model }) {
  const { score_scale: scale, normaliser } = model.info;
  const rows = Object.entries(model.info)
    .filter(([, value]) => value !== null && typeof value !== "object")
    .map(([name, value]): [string, string] => [name.replaceAll("_", " "), String(value)]);
  const rewards = scale?.normaliser ?? normaliser;
  if (scale)
    rows.push([
      "score scale",
      `${scale.kind}, scores from ${signed(-scale.limit, 1)} to ${signed(scale.limit, 1)}`,
    ]);
  if (rewards) {
    rows.push([
      "rewards",
      `mean ${signed(rewards.mean)}, sd ${signed(rewards.sd)} of ${count(rewards.n)} rows, from ${rewards.reward_source}`,
    ]);
  }
  const summary = Object.entries((model.info.summary ?? {}) as Record<string, unknown>).filter(
    ([, value]) => typeof value === "number",
  );
  return (
    <Card withBorder>
      <Title order={2} size="h6" mb="xs">
        What inference has to know, and how training ended
      </Title>
      <Table aria-label="Facts of the model">
        <Table.Tbody>
          {rows.map(([name, value]) => (
            <Table.Tr key={name}>
              <Table.Th scope="row">{name}</Table.Th>
              <Table.Td style={{ overflowWrap: "anywhere" }}>{value}</Table.Td>
            </Table.Tr>
          ))}
          {summary.map(([name, value]) => (
            <Table.Tr key={name}>
              <Table.Th scope="row">{name.replaceAll("_", " ")}</Table.Th>
              <Table.Td>{short(value as number)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Card>
  );
}

function Files({ project, model }: { project: string; model: Model }) {
  return (
    <Card withBorder>
      <Title order={2} size="h6" mb="xs">
        Files
      </Title>
      <Table aria-label="Files of the model">
        <Table.Tbody>
          {model.files.map((file) => (
            <Table.Tr key={file.path}>
              <Table.Td>
                <Anchor
                  size="sm"
                  href={`/api/v1/projects/${project}/models/${model.id}/files/${file.path}`}
                  download
                >
                  {file.path}
                </Anchor>
              </Table.Td>
              <Table.Td ta="right">{bytes(file.size)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      <Group mt="sm">
        <Text size="sm" c="dimmed">
          For transformers and vLLM as it is: <Code>steerboard models export {model.name} DIR</Code>
        </Text>
      </Group>
    </Card>
  );
}

function LineageGraph({ project, lineage }: { project: string; lineage: Schemas["Lineage"] }) {
  const node = (one: Schemas["LineageNode"]): GraphNode => ({
    id: one.id,
    title: one.name,
    detail: `${one.type} · ${one.detail}`,
    color: COLOR[one.type],
    href: `/p/${project}/${FOLDER[one.type]}/${one.id}`,
  });
  const children = lineage.children.map((child) => ({ source: lineage.model, target: child.id }));
  return (
    <Graph
      nodes={[...lineage.nodes, ...lineage.children].map(node)}
      edges={[...lineage.edges, ...children]}
      label="From data to this model, and what was made of it"
    />
  );
}

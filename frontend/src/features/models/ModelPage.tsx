import {
  Anchor,
  Badge,
  Button,
  Card,
  Code,
  Group,
  SimpleGrid,
  Stack,
  Table,
  Text,
  Title,
} from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { deleteModel, lineageQuery, modelQuery } from "../../api/models/models";
import { ItemComments } from "../../shared/comments/ItemComments";
import { Loaded, LoadedPage } from "../../shared/Feedback";
import { bytes, count, result, signed, counted } from "../../shared/format/format";
import { figuresOf } from "../../shared/format/figures";
import { Graph, type GraphNode } from "../../shared/charts/Graph";
import { Link } from "../../shared/links";
import { MarksPanel } from "../../shared/marks/MarksPanel";
import { PageStar } from "../../shared/marks/Star";
import { Page } from "../../shared/Page";
import { When } from "../../shared/When";
import { Academic } from "./Academic";
import { Benchmarks } from "./Benchmarks";
import { Evaluations } from "./Evaluations";
import { HeldOut, TrainedOnChanges } from "./HeldOut";
import { ModelActions } from "./ModelActions";
import { promptOf, SCORE, signOf } from "../../shared/forms/condition";
import { History, StageBadge } from "./Promotion";
import { UseElsewhere } from "./UseElsewhere";

type Model = Schemas["ModelDetail"];
const COLOR = {
  model: "helm",
  dataset: "orange",
  run: "violet",
  evaluation: "teal",
  campaign: "pink",
  judge: "pink",
  arena: "pink",
};
const FOLDER = { model: "models", dataset: "datasets", run: "runs", evaluation: "evaluations" };
/** The tab of their evaluation on which they are. */
const TAB = { campaign: "people", judge: "judges" };

function hrefOf(project: string, { type, id, name, evaluation }: Schemas["LineageNode"]): string {
  if (type === "campaign" || type === "judge")
    return `/p/${project}/evaluations/${evaluation}?tab=${TAB[type]}`;
  if (type === "arena") return `/p/${project}/arena?a=${encodeURIComponent(name)}&tab=leaderboard`;
  return `/p/${project}/${FOLDER[type]}/${id}`;
}

const route = getRouteApi("/p/$project/models/$model");

export function ModelPage() {
  const { project, model } = route.useParams();
  const navigate = route.useNavigate();
  const query = useQuery(modelQuery(project, model));
  const lineage = useQuery(lineageQuery(project, model));
  return (
    <LoadedPage
      title="Model"
      query={query}
      others={
        <Link to="/p/$project/models" params={{ project }}>
          All models
        </Link>
      }
    >
      {(found) => (
        <Page
          title={found.name}
          beside={
            <>
              <Badge color="gray">{found.role}</Badge>
              <StageBadge stage={found.stage} />
              <PageStar project={project} type="model" item={found.id} name={found.name} />
            </>
          }
          actions={<ModelActions project={project} model={found as Model} />}
          about={
            <>
              {counted(found.info.parameters, "parameter")}, {bytes(found.size)}
              {found.info.lora ? `; LoRA of rank ${found.info.lora.rank}, over its base` : ""}; created{" "}
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
          <MarksPanel
            project={project}
            type="model"
            item={found.id}
            deletion={{
              name: found.name,
              about:
                "Its weights are deleted once nothing else uses them. A model that others refer to is kept.",
              remove: () => deleteModel(project, found.id),
              onGone: () => navigate({ to: "/p/$project/models", params: { project } }),
            }}
          />
          {found.run_id && <TrainedOnChanges project={project} run={found.run_id} />}
          <SimpleGrid cols={{ base: 1, lg: 2 }} style={{ alignItems: "start" }}>
            <Stack>
              <Facts model={found as Model} />
              <Files project={project} model={found as Model} />
            </Stack>
            <Stack>
              <HeldOut model={found as Model} />
              <TrainingEnd model={found as Model} />
            </Stack>
          </SimpleGrid>
          <Benchmarks project={project} model={found as Model} />
          <Academic project={project} model={found.name} />
          <Evaluations project={project} model={found.name} entered={found.in_evaluations} />
          {found.answers && <UseElsewhere project={project} model={found.name} />}
          <History project={project} model={found.name} />
          <section>
            <Title order={2} size="h4" mb="sm">
              Lineage
            </Title>
            <Loaded query={lineage} rows={3}>
              {(graph) => <LineageGraph project={project} lineage={graph} />}
            </Loaded>
          </section>
          <ItemComments project={project} type="model" item={found.id} about="this model" />
        </Page>
      )}
    </LoadedPage>
  );
}

const spaced = (text: string) => text && ` ${text}`;

function Facts({ model }: { model: Model }) {
  const { score_scale: scale, normaliser } = model.info;
  const rows = Object.entries(model.info)
    .filter(([name, value]) => name !== "format" && value !== null && typeof value !== "object")
    .map(([name, value]): [string, string] => [
      name.replaceAll("_", " "),
      typeof value === "number" ? count(value) : String(value),
    ]);
  const rewards = scale?.normaliser ?? normaliser;
  const form = model.info.condition;
  const attributes = form?.attributes ?? [];
  const { request, opening } = form ? promptOf(form) : { request: "", opening: "" };
  if (model.info.template === "plain") {
    rows.push(["a prompt as it sees it", `User: …${spaced(request)} Assistant:${spaced(opening)} …`]);
  } else if (request) {
    rows.push(["a request as it sees it", `…${spaced(request)}`]);
  }
  const writing = form?.writing;
  if (writing?.style === "words")
    rows.push(["score words, from lowest to highest", writing.words.join(", ")]);
  if (writing?.style === "tokens") {
    const tokens = writing.words.map((word, part) => `${signOf(part, writing)} (began as ${word})`);
    rows.push(["score tokens, from lowest to highest", tokens.join(", ")]);
  }
  for (const { name, low, high, step, default: usual } of attributes) {
    const end = typeof usual === "number" ? `; ${signed(usual, 1)} by default` : "; left out by default";
    const title = name === SCORE ? "score format" : `asked for ${name}`;
    rows.push([
      title,
      `from ${signed(low, 1)} to ${signed(high, 1)} in steps of ${step}${name === SCORE ? "" : end}`,
    ]);
  }
  if (scale)
    rows.push([
      "score scale",
      `${scale.kind}, scores from ${signed(-scale.limit, 1)} to ${signed(scale.limit, 1)}`,
    ]);
  if (rewards) {
    rows.push([
      "rewards",
      `mean ${signed(rewards.mean)}, sd ${signed(rewards.sd)} of ${counted(rewards.n, "row")}, from ${rewards.reward_source}`,
    ]);
  }
  return (
    <Card withBorder>
      <Title order={2} size="h6" mb="xs">
        Inference settings
      </Title>
      <Table aria-label="Facts of the model">
        <Table.Tbody>
          {rows.map(([name, value]) => (
            <Table.Tr key={name}>
              <Table.Th scope="row">{name}</Table.Th>
              <Table.Td style={{ overflowWrap: "anywhere" }}>{value}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Card>
  );
}

/** Final metrics that are shown before the others are asked for: the important ones come first. */
const FIRST_METRICS = 8;

function TrainingEnd({ model }: { model: Model }) {
  const [all, setAll] = useState(false);
  const summary = figuresOf((model.info.summary ?? {}) as Record<string, unknown>).filter(
    ([, value]) => typeof value === "number",
  );
  if (!summary.length) return null;
  const more = summary.length - FIRST_METRICS;
  return (
    <Card withBorder>
      <Title order={2} size="h6" mb="xs">
        Final metrics
      </Title>
      <Table aria-label="Final metrics">
        <Table.Tbody>
          {(all ? summary : summary.slice(0, FIRST_METRICS)).map(([name, value]) => (
            <Table.Tr key={name}>
              <Table.Th scope="row">{name.replaceAll("_", " ")}</Table.Th>
              <Table.Td>{result(name, value as number)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {more > 0 && (
        <Button variant="subtle" size="compact-sm" mt="xs" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Fewer metrics" : `${more} more ${more === 1 ? "metric" : "metrics"}`}
        </Button>
      )}
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
    href: hrefOf(project, one),
  });
  const children = lineage.children.map((child) => ({ source: lineage.model, target: child.id }));
  return (
    <Graph
      nodes={[...lineage.nodes, ...lineage.children].map(node)}
      edges={[...lineage.edges, ...children]}
      label="From data to this model, and what was made from it"
    />
  );
}

import {
  ActionIcon,
  Badge,
  Button,
  Drawer,
  Group,
  Paper,
  SimpleGrid,
  Stack,
  Table,
  Text,
  Title,
} from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import { IconChevronDown, IconChevronUp } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Schemas } from "../../../api/client";
import { type Sample, sampleBlockQuery, wholeRow } from "../../../api/datasets/datasets";
import { AttributeBadges } from "../../../shared/AttributeBadges";
import { gradesOf } from "../../../shared/forms/condition";
import { differences } from "../../../shared/text/difference";
import { Marked } from "../../../shared/text/Marked";
import { Empty, Loaded } from "../../../shared/Feedback";
import { count, signed } from "../../../shared/format/format";
import { ShownInPart } from "../../../shared/text/ShownInPart";
import { Turns } from "../../../shared/text/Turns";

// Not among the facts at the top.
const SHOWN_APART = ["prompt", "chosen", "rejected", "response", "reference", "attributes"];
const route = getRouteApi("/p/$project/datasets/$dataset");

interface Properties {
  project: string;
  dataset: Schemas["DatasetOut"];
  row: number;
  /** The rows in the table's window, to step through them. */
  places: (Sample | undefined)[];
}

/** One row as people read it: the conversation, and chosen against rejected with their difference marked. */
export function SampleDrawer({ project, dataset, row, places }: Properties) {
  const navigate = route.useNavigate();
  const query = useQuery(sampleBlockQuery(project, dataset.name, row, 1));
  const at = places.findIndex((sample) => sample?.row === row);
  const open = (next: number | undefined) =>
    void navigate({ search: (old) => ({ ...old, row: next }), replace: true, resetScroll: false });
  const step = (by: number) => {
    const next = at < 0 ? undefined : places[at + by];
    if (next) open(next.row);
  };
  useHotkeys([
    ["j", () => step(1)],
    ["k", () => step(-1)],
  ]);
  return (
    <Drawer
      opened
      onClose={() => open(undefined)}
      position="right"
      size="xl"
      title={
        <Group gap="xs">
          <Text fw={600}>Row {count(row)}</Text>
          <ActionIcon
            variant="default"
            aria-label="The row before (k)"
            disabled={at < 1}
            onClick={() => step(-1)}
          >
            <IconChevronUp size={16} />
          </ActionIcon>
          <ActionIcon
            variant="default"
            aria-label="The next row (j)"
            disabled={at < 0 || !places[at + 1]}
            onClick={() => step(1)}
          >
            <IconChevronDown size={16} />
          </ActionIcon>
        </Group>
      }
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Loaded query={query} rows={4}>
        {(page) => {
          const sample = page.items.find((one) => one.row === row);
          if (!sample) return <Empty title={`There is no row ${count(row)}`} />;
          return (
            <>
              {sample.cut && (
                <ShownInPart
                  whole={wholeRow(project, dataset.name, row)}
                  name={`${dataset.name}-row-${row}.json`}
                />
              )}
              <Whole sample={sample} />
            </>
          );
        }}
      </Loaded>
    </Drawer>
  );
}

function Whole({ sample }: { sample: Sample }) {
  const fields = sample.sample as Record<string, unknown>;
  const prompt = (fields.prompt ?? []) as { role: string; content: string }[];
  const { chosen, rejected } = fields as Record<string, string | undefined>;
  const single = ["response", "reference"].filter((name) => typeof fields[name] === "string");
  const facts = Object.entries(fields).filter(([name]) => !SHOWN_APART.includes(name));
  const grades = gradesOf(fields);
  const extra = Object.entries(sample.extra ?? {});
  return (
    <Stack>
      <Group gap="xs">
        <Badge color="gray">{sample.split.replace("_", " ")}</Badge>
        {facts.map(([name, value]) => (
          <Badge key={name} color="gray">
            {name} {String(value)}
          </Badge>
        ))}
        {typeof fields.group === "number" && (
          <Button
            size="compact-xs"
            variant="subtle"
            renderRoot={(props) => (
              <route.Link
                {...props}
                search={(old) => ({ ...old, group: fields.group as number, row: undefined })}
              />
            )}
          >
            All answers to this prompt
          </Button>
        )}
        {typeof sample.reward === "number" && (
          <Badge className="state-badge">reward {signed(sample.reward)}</Badge>
        )}
      </Group>
      {Object.keys(grades).length > 0 && <AttributeBadges values={grades} label="Attributes" />}
      <Turns turns={prompt} />
      {chosen !== undefined && rejected !== undefined ? (
        <Pair chosen={chosen} rejected={rejected} />
      ) : (
        single.map((name) => (
          <Side key={name} title={name}>
            {String(fields[name])}
          </Side>
        ))
      )}
      {extra.length > 0 && (
        <section>
          <Title order={3} size="h6">
            Other columns of the file
          </Title>
          <Table aria-label="Other columns">
            <Table.Tbody>
              {extra.map(([name, value]) => (
                <Table.Tr key={name}>
                  <Table.Th scope="row">{name}</Table.Th>
                  <Table.Td style={{ overflowWrap: "anywhere" }}>
                    {typeof value === "string" ? value : JSON.stringify(value)}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </section>
      )}
    </Stack>
  );
}

function Pair({ chosen, rejected }: { chosen: string; rejected: string }) {
  const [left, right] = differences(chosen, rejected);
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
      <Side title="chosen">
        <Marked parts={left} mark="own-chosen" />
      </Side>
      <Side title="rejected">
        <Marked parts={right} mark="own-rejected" />
      </Side>
    </SimpleGrid>
  );
}

function Side({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Paper withBorder p="sm">
      <Text size="xs" c="dimmed">
        {title}
      </Text>
      <pre className="text">{children}</pre>
    </Paper>
  );
}

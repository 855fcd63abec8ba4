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
import { useHotkeys, useWindowEvent } from "@mantine/hooks";
import { IconChevronDown, IconChevronUp } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import type { Schemas } from "../../../api/client";
import { excerptsQuery, type Sample, sampleBlockQuery, wholeRow } from "../../../api/datasets/datasets";
import { AttributeBadges } from "../../../shared/AttributeBadges";
import { gradesOf } from "../../../shared/forms/condition";
import { AnswerBody } from "../../../shared/text/AnswerBody";
import { type Answer, isAnswer } from "../../../shared/text/answers";
import { Confirm } from "../../../shared/Confirm";
import { Empty, Loaded } from "../../../shared/Feedback";
import { count, signed } from "../../../shared/format/format";
import { Excerpt } from "../../../shared/text/Excerpt";
import { ShownInPart } from "../../../shared/text/ShownInPart";
import { Turns } from "../../../shared/text/Turns";
import { RowReview } from "../review/RowReview";
import { Steps } from "./Steps";

// Not among the facts at the top.
const SHOWN_APART = [
  "prompt",
  "chosen",
  "rejected",
  "response",
  "reference",
  "attributes",
  "completions",
  "labels",
];
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
  const { q, match } = route.useSearch();
  const excerpts = useQuery({
    ...excerptsQuery(project, dataset.name, row, q ?? "", match),
    enabled: q !== undefined,
  });
  const at = places.findIndex((sample) => sample?.row === row);
  const open = (next: number | undefined) =>
    void navigate({ search: (old) => ({ ...old, row: next }), replace: true, resetScroll: false });
  // Where to go once what is not saved may be lost.
  const [unsaved, setUnsaved] = useState(false);
  const [leaving, setLeaving] = useState<{ to: number | undefined } | null>(null);
  const leave = (to: number | undefined) => {
    // Later: the Escape that would close the drawer must not close the question as well.
    if (unsaved) setTimeout(() => setLeaving({ to }));
    else open(to);
  };
  useWindowEvent("beforeunload", (event) => {
    if (unsaved) event.preventDefault();
  });
  const step = (by: number) => {
    const next = at < 0 ? undefined : places[at + by];
    if (next) leave(next.row);
  };
  useHotkeys([
    ["j", () => step(1)],
    ["k", () => step(-1)],
  ]);
  return (
    <Drawer
      opened
      onClose={() => leave(undefined)}
      position="right"
      size="xl"
      title={
        <Group gap="xs">
          <Text fw={600}>Row {count(row)}</Text>
          <ActionIcon
            variant="default"
            aria-label="Previous row (k)"
            disabled={at < 1}
            onClick={() => step(-1)}
          >
            <IconChevronUp size={16} />
          </ActionIcon>
          <ActionIcon
            variant="default"
            aria-label="Next row (j)"
            disabled={at < 0 || !places[at + 1]}
            onClick={() => step(1)}
          >
            <IconChevronDown size={16} />
          </ActionIcon>
        </Group>
      }
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Confirm
        title={leaving ? "Leave what is not saved?" : null}
        go="Leave"
        pending={false}
        error={null}
        onClose={() => setLeaving(null)}
        onGo={() => {
          setUnsaved(false);
          setLeaving(null);
          open(leaving?.to);
        }}
      >
        The last change of this row is not on the server. Correct it, or wait until it is saved.
      </Confirm>
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
              <RowReview key={row} project={project} dataset={dataset} number={row} onUnsaved={setUnsaved}>
                <Whole sample={sample} excerpts={excerpts.data ?? []} />
              </RowReview>
            </>
          );
        }}
      </Loaded>
    </Drawer>
  );
}

type Excerpts = NonNullable<Sample["excerpts"]>;

function Whole({ sample, excerpts }: { sample: Sample; excerpts: Excerpts }) {
  const fields = sample.sample as Record<string, unknown>;
  const prompt = (fields.prompt ?? []) as { role: string; content: string }[];
  const { chosen, rejected } = fields;
  const single = ["response", "reference"].flatMap((name) => {
    const answer = fields[name];
    return isAnswer(answer) ? [[name, answer] as const] : [];
  });
  const facts = Object.entries(fields).filter(([name]) => !SHOWN_APART.includes(name));
  const grades = gradesOf(fields);
  const extra = Object.entries(sample.extra ?? {});
  const turns = new Map(
    excerpts.flatMap(({ turn, parts }) =>
      typeof turn === "number" ? [[turn, <Excerpt key={turn} parts={parts} />] as const] : [],
    ),
  );
  const found = (field: string) => {
    const excerpt = excerpts.find((one) => one.field === field);
    return excerpt && <Excerpt parts={excerpt.parts} />;
  };
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
      <Turns turns={prompt} shown={turns} />
      {isAnswer(chosen) && isAnswer(rejected) ? (
        <Pair chosen={chosen} rejected={rejected} found={found} />
      ) : (
        single.map(([name, answer]) => (
          <Side key={name} title={name}>
            <AnswerBody answer={answer} shown={found(name)} />
          </Side>
        ))
      )}
      {Array.isArray(fields.completions) &&
        (found("completions") ? (
          <Side title="steps">
            <pre className="text">{found("completions")}</pre>
          </Side>
        ) : (
          <Steps
            steps={fields.completions as string[]}
            labels={(fields.labels ?? []) as (boolean | number)[]}
          />
        ))}
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

interface PairProperties {
  chosen: Answer;
  rejected: Answer;
  /** A side with the hits of a search, which are marked in place of the differences. */
  found: (side: string) => ReactNode;
}

function Pair({ chosen, rejected, found }: PairProperties) {
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
      <Side title="chosen">
        <AnswerBody answer={chosen} other={rejected} mark="own-chosen" shown={found("chosen")} />
      </Side>
      <Side title="rejected">
        <AnswerBody answer={rejected} other={chosen} mark="own-rejected" shown={found("rejected")} />
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
      {children}
    </Paper>
  );
}

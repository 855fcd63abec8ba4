import { Badge, Card, Group, SimpleGrid, Slider, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo, useState } from "react";
import { type ProbedStep, probesQuery, type RunProbes } from "../../../api/runs/probes";
import { shown } from "../../../shared/forms/condition";
import { Empty, Loaded } from "../../../shared/Feedback";
import { count } from "../../../shared/format/format";
import { differences, type Part } from "../../../shared/text/difference";
import { Marked } from "../../../shared/text/Marked";
import { Turns } from "../../../shared/text/Turns";

/** What a run answers to its probe prompts, step by step, next to what the model that it started from answered. */
export function ProbesView({ project, run, live }: { project: string; run: string; live: boolean }) {
  const query = useQuery(probesQuery(project, run, live));
  return (
    <Loaded query={query}>
      {(probes) =>
        probes.prompts.length ? (
          <Steps probes={probes} />
        ) : (
          <Empty title={probes.steps.length ? "No prompts" : "No answers yet"}>
            {probes.steps.length
              ? "No row of the dataset is held out, and the config names no prompts."
              : live
                ? "The first ones come before the first step."
                : "It ended before its first step; see the log and the timeline."}
          </Empty>
        )
      }
    </Loaded>
  );
}

function Steps({ probes }: { probes: RunProbes }) {
  const { prompts, steps } = probes;
  // The newest, also of those that are yet to come, until someone looks at another.
  const [place, setPlace] = useState<number>();
  const last = steps.length - 1;
  const at = Math.min(place ?? last, last);
  const step = steps[at]!;
  const start = steps[0]!.step === 0 ? steps[0]! : undefined;
  return (
    <Stack>
      <Text size="sm" c="dimmed" maw={720}>
        Greedy answers at each evaluation, compared against the start model: the one that this run’s training
        began with. Words that differ are marked.
      </Text>
      <Group gap="lg" align="center" wrap="nowrap" maw={720}>
        <Text size="sm" fw={600} w={110} flex="none" role="status">
          {nameOf(step)}
        </Text>
        <Slider
          style={{ flex: 1 }}
          thumbLabel="Step"
          min={0}
          max={last}
          step={1}
          value={at}
          label={(one) => steps[one]?.step}
          marks={steps.length > 1 ? steps.map((_, one) => ({ value: one })) : []}
          disabled={steps.length < 2}
          onChange={(next) => setPlace(next === last ? undefined : next)}
        />
      </Group>
      {prompts.map((prompt, number) => (
        <Card key={number} withBorder p="sm" role="group" aria-label={`Prompt ${number + 1}`}>
          <Stack gap="sm">
            <Turns turns={prompt.messages as { role: string; content: string }[]} />
            <Answers start={start} step={step} number={number} />
          </Stack>
        </Card>
      ))}
    </Stack>
  );
}

function nameOf(step: ProbedStep): string {
  return step.step === 0 ? "Start model" : `Step ${count(step.step)}`;
}

function Answers({ start, step, number }: { start?: ProbedStep; step: ProbedStep; number: number }) {
  const before = start?.answers[number]?.text ?? "";
  const now = step.answers[number]?.text ?? "";
  const [left, right] = useMemo(() => differences(before, now), [before, now]);
  if (!start || step.step === 0)
    return <Side step={step} number={number} parts={[{ text: now, own: false }]} />;
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
      <Side step={start} number={number} parts={left} />
      <Side step={step} number={number} parts={right} changed={before !== now} />
    </SimpleGrid>
  );
}

interface SideProperties {
  step: ProbedStep;
  number: number;
  parts: Part[];
  changed?: boolean;
}

function Side({ step, number, parts, changed }: SideProperties): ReactNode {
  const answer = step.answers[number];
  const text = parts.map((part) => part.text).join("");
  return (
    <div>
      <Group gap={6} mb={2}>
        <Text size="xs" c="dimmed">
          {nameOf(step)}
          {step.condition !== null && `, asked for ${shown(step.condition)}`}
        </Text>
        {changed === false && <Badge color="gray">as before</Badge>}
        {answer && !answer.finished && (
          <Badge color="gray" title={`The limit of ${count(answer.tokens)} tokens cut it.`}>
            cut
          </Badge>
        )}
      </Group>
      {text.trim() ? (
        <pre className="text">
          <Marked parts={parts} mark={step.step === 0 ? "own-rejected" : "own-chosen"} />
        </pre>
      ) : (
        <Text size="sm" fs="italic" c="dimmed">
          no visible text
        </Text>
      )}
    </div>
  );
}

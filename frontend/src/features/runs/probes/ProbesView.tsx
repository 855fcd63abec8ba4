import { Badge, Card, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import { type ProbedStep, probesQuery, type RunProbes } from "../../../api/runs/probes";
import { shown } from "../../../shared/forms/condition";
import { Empty, Loaded } from "../../../shared/Feedback";
import { count, counted } from "../../../shared/format/format";
import { differences, type Part } from "../../../shared/text/difference";
import { Marked } from "../../../shared/text/Marked";
import { Turns } from "../../../shared/text/Turns";
import { StepSlider, useStepPlace } from "../StepSlider";

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
                ? "The first ones appear before the first step."
                : "It ended before its first step; see the log and the timeline."}
          </Empty>
        )
      }
    </Loaded>
  );
}

function Steps({ probes }: { probes: RunProbes }) {
  const { prompts, steps } = probes;
  const [at, choose] = useStepPlace(steps.length);
  const step = steps[at]!;
  const start = steps[0]!.step === 0 ? steps[0]! : undefined;
  return (
    <Stack>
      <Text size="sm" c="dimmed" maw={720}>
        Greedy answers at each evaluation, compared against the start model: the one that this run’s training
        began with. Words that differ are marked.
      </Text>
      <StepSlider name={nameOf(step)} steps={steps} place={at} onChoose={choose} />
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
          <Badge color="gray" title={`Cut by the limit of ${counted(answer.tokens, "token")}.`}>
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

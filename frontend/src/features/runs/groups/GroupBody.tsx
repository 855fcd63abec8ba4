import { Badge, Card, Group, SegmentedControl, Spoiler, Stack, Text } from "@mantine/core";
import { type ReactNode, useState } from "react";
import type { AnswerGroup, GroupAnswer } from "../../../api/runs/groups";
import { count, figure, signed, counted } from "../../../shared/format/format";
import { TokenText } from "../pairs/TokenText";
import { RolloutTurns } from "./RolloutTurns";

type Shading = "none" | "log_ratios" | "advantages";
const NAMES: Record<Shading, string> = { none: "Plain", log_ratios: "Log-ratio", advantages: "Advantage" };

/** The answers to one prompt, best first, with what each was worth. */
export function GroupBody({ group, fading }: { group: AnswerGroup; fading: boolean }) {
  const shadings = (["log_ratios", "advantages"] as const).filter((name) =>
    group.answers.some((answer) => answer[name].length > 0),
  );
  const [chosen, choose] = useState<Shading>("none");
  const shading = shadings.some((name) => name === chosen) ? chosen : "none";
  const most =
    shading === "none"
      ? 1
      : group.answers.reduce(
          (top, answer) => answer[shading].reduce((a, b) => Math.max(a, Math.abs(b)), top),
          0,
        );
  return (
    <Stack gap="sm" style={{ opacity: fading ? 0.5 : 1 }} aria-busy={fading}>
      <Card withBorder p="sm" role="group" aria-label="Prompt">
        <Text size="xs" c="dimmed" mb={4}>
          Prompt, row {count(group.row)} of the dataset
        </Text>
        <Folded>
          <pre className="text">{group.prompt}</pre>
        </Folded>
      </Card>
      <Group justify="space-between" gap="xs">
        <Text size="sm" c="dimmed">
          {count(group.sampled)} {group.sampled === 1 ? "answer" : "answers"}
          {group.tied && ", all with the same reward: nothing tells them apart"}
          {group.answers.length < group.sampled && `, the ${count(group.answers.length)} best shown`}
        </Text>
        {shadings.length > 0 && (
          <SegmentedControl
            size="xs"
            aria-label="Shade tokens by"
            value={shading}
            onChange={(value) => choose(value as Shading)}
            data={(["none", ...shadings] as Shading[]).map((value) => ({ value, label: NAMES[value] }))}
          />
        )}
      </Group>
      {group.answers.map((answer) => (
        <Answer key={answer.n} answer={answer} shading={shading} most={most} />
      ))}
    </Stack>
  );
}

const ENDINGS = {
  ended: "Ended by the model.",
  cut: "Cut by a limit before its end token.",
  "ended by the environment": "The environment was done.",
  "ended by max_turns": "It had as many turns as are allowed.",
};

function endingOf(answer: GroupAnswer): keyof typeof ENDINGS {
  if (answer.ended_by_environment) return "ended by the environment";
  if (!answer.finished) return "cut";
  return answer.turns.length > 0 ? "ended by max_turns" : "ended";
}

function Answer({ answer, shading, most }: { answer: GroupAnswer; shading: Shading; most: number }) {
  const figures: [string, ReactNode][] = [
    ["reward", answer.reward === null ? "left out" : figure(answer.reward)],
    ["advantage", answer.advantage === null ? "–" : signed(answer.advantage)],
    ...(answer.kl === null ? [] : ([["KL", `${signed(answer.kl)} nats`]] as [string, ReactNode][])),
    ["length", counted(answer.tokens, "token")],
    ...(answer.turns.length > 0 ? ([["turns", count(answer.turns.length)]] as [string, ReactNode][]) : []),
    ...Object.entries(answer.sources).map(([name, value]): [string, ReactNode] => [
      name.replaceAll("_", " "),
      value === null ? "not scored" : figure(value),
    ]),
  ];
  const values = shading === "none" ? [] : answer[shading];
  return (
    <Card withBorder p="sm" role="group" aria-label={`Answer ${answer.n + 1}`}>
      <Group gap="md" mb="xs">
        {figures.map(([name, value]) => (
          <Text key={name} size="sm" component="span">
            <Text span size="xs" c="dimmed">
              {name}
            </Text>{" "}
            {value}
          </Text>
        ))}
        <Badge
          color={answer.finished ? "teal" : "gray"}
          className="state-badge"
          title={ENDINGS[endingOf(answer)]}
        >
          {endingOf(answer)}
        </Badge>
      </Group>
      <Folded>
        {values.length > 0 ? (
          <>
            <TokenText
              tokens={answer.texts.map((text, at) => ({ text, log_ratio: values[at] ?? 0 }))}
              most={most}
              unit={shading === "log_ratios" ? "nats" : ""}
            />
            {answer.tokens > answer.texts.length && (
              <Text size="xs" c="dimmed">
                The first {count(answer.texts.length)} of {counted(answer.tokens, "token")}.
              </Text>
            )}
          </>
        ) : answer.turns.length > 0 ? (
          <RolloutTurns turns={answer.turns} />
        ) : answer.text.trim() ? (
          <pre className="text">{answer.text}</pre>
        ) : (
          <Text size="sm" fs="italic" c="dimmed">
            no visible text
          </Text>
        )}
      </Folded>
    </Card>
  );
}

/** Long texts show their beginning until someone asks for more. */
function Folded({ children }: { children: ReactNode }) {
  return (
    <Spoiler maxHeight={180} showLabel="Show all" hideLabel="Show less">
      {children}
    </Spoiler>
  );
}

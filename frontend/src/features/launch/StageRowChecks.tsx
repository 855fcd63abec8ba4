import { Accordion, Badge, Card, Group, Stack, Text, Title } from "@mantine/core";
import type { Schemas } from "../../api/client";
import { count } from "../../shared/format/format";
import { WithCode } from "../../shared/text/WithCode";

type StagesRowCheck = Schemas["StagesRowCheck"];

interface Outcome {
  rank: number;
  badge: string;
  color: string;
  words: string;
  stages: string[];
}

const NAMED = 4;
// Lines that need no one's attention are folded once there are more.
const SHOWN = 3;
const FINE = 5;
const UNCHECKED = 4;

/** What a worker found in the rows of a recipe's training stages, what stops a launch first. Equal outcomes are one
 * line; the fine ones are folded. */
export function StageRowChecks({ found }: { found: StagesRowCheck[] }) {
  const outcomes = byOutcome(found);
  const of = (rank: number) => outcomes.filter((one) => one.rank === rank);
  const unchecked = of(UNCHECKED);
  const folded = [
    {
      value: "unchecked",
      outcomes: unchecked.length > SHOWN ? unchecked : [],
      words: "not checked before launch",
    },
    { value: "fine", outcomes: of(FINE), words: "fine" },
  ].filter((one) => one.outcomes.length > 0);
  const shown = outcomes.filter((one) => !folded.some((fold) => fold.outcomes.includes(one)));
  if (!outcomes.length) return null;
  return (
    <Card withBorder component="section" aria-labelledby="row-checks">
      <Title order={3} size="h5" id="row-checks">
        Rows
      </Title>
      <Text size="sm" c="dimmed" mb={shown.length ? "sm" : 0}>
        Tokenised by a worker as the stages will read them.
      </Text>
      <Stack gap="xs" role="status">
        {shown.map((one) => (
          <OutcomeLine key={one.words} outcome={one} />
        ))}
      </Stack>
      {folded.length > 0 && (
        <Accordion variant="contained" mt="sm" multiple>
          {folded.map(({ value, outcomes, words }) => (
            <Accordion.Item value={value} key={value}>
              <Accordion.Control>
                <Text size="sm">{`${stagesIn(outcomes)} ${words}`}</Text>
              </Accordion.Control>
              <Accordion.Panel>
                <Stack gap="xs">
                  {outcomes.map((one) => (
                    <OutcomeLine key={one.words} outcome={one} />
                  ))}
                </Stack>
              </Accordion.Panel>
            </Accordion.Item>
          ))}
        </Accordion>
      )}
    </Card>
  );
}

function OutcomeLine({ outcome: { badge, color, words, stages } }: { outcome: Outcome }) {
  return (
    <Group gap="xs" align="flex-start" wrap="nowrap">
      <Badge color={color} className="state-badge" style={{ flexShrink: 0 }}>
        {badge}
      </Badge>
      <Text size="sm" style={{ overflowWrap: "anywhere" }}>
        <Text span fw={600} inherit title={stages.join(", ")}>
          {someOf(stages)}
        </Text>
        : <WithCode text={words} />
      </Text>
    </Group>
  );
}

/** The stages that cannot learn from their rows. */
export function refusedStages(found: StagesRowCheck[]): string[] {
  return found.flatMap((one) => (one.check?.refusal ? one.stages : []));
}

export function someOf(names: string[]): string {
  const more = names.length - NAMED;
  return more > 0 ? `${names.slice(0, NAMED).join(", ")} and ${more} more` : names.join(", ");
}

function stagesIn(outcomes: Outcome[]): string {
  const number = outcomes.reduce((sum, one) => sum + one.stages.length, 0);
  return `${number} ${number === 1 ? "stage" : "stages"}`;
}

function byOutcome(found: StagesRowCheck[]): Outcome[] {
  const outcomes = new Map<string, Outcome>();
  for (const one of found) {
    const outcome = outcomeOf(one);
    const same = outcomes.get(outcome.words);
    if (same) same.stages.push(...outcome.stages);
    else outcomes.set(outcome.words, outcome);
  }
  return [...outcomes.values()].sort((one, other) => one.rank - other.rank);
}

function outcomeOf({ stages, check, not_checked: reason }: StagesRowCheck): Outcome {
  const outcome = (rank: number, badge: string, color: string, words: string): Outcome => ({
    ...{ rank, badge, color, words },
    stages: [...stages],
  });
  if (!check) return outcome(UNCHECKED, "not checked", "gray", `${reason}; the run checks the rows.`);
  if (["failed", "cancelled"].includes(check.state)) {
    return outcome(2, "no result", "orange", `the rows could not be checked: ${check.reason}.`);
  }
  if (check.state !== "succeeded") {
    return outcome(
      3,
      "checking",
      "blue",
      "the rows are checked as soon as a worker is available; you can launch now.",
    );
  }
  if (check.refusal) return outcome(0, "refused", "red", `${check.refusal}.`);
  if (check.warning) {
    const color = check.warning.level === "serious" ? "red" : "orange";
    return outcome(
      1,
      `${count(check.too_long)} of ${count(check.checked)} too long`,
      color,
      check.warning.message,
    );
  }
  const few = check.too_long ? count(check.too_long) : "none";
  return outcome(FINE, "fine", "green", `${few} of ${count(check.checked)} checked rows too long.`);
}

import { Badge, Group, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Schemas } from "../../../api/client";
import { roundsQuery } from "../../../api/runs/pipelines";
import type { Run } from "../../../api/runs/runs";
import { Loaded } from "../../../shared/Feedback";
import { count, percent, seconds, short } from "../../../shared/format/format";
import { Link } from "../../../shared/links";
import { StateBadge } from "../../../shared/StateBadge";
import { Findings } from "../Findings";
import { RoundActions } from "./RoundActions";

type Rounds = Schemas["RoundsReport"];
type Round = Schemas["RoundRow"];
type Figure = Schemas["Estimate"] | null | undefined;

/** Every round of a pipeline in a row: what it kept, how its policy answers, and which one is in production. */
export function RoundsView({ project, pipeline, runs }: { project: string; pipeline: string; runs: Run[] }) {
  const query = useQuery(roundsQuery(project, pipeline));
  return (
    <Loaded query={query}>
      {(found) => (
        <Findings
          project={project}
          pipeline={pipeline}
          what="rounds"
          verdict={found.verdict}
          about={about(found)}
          notes={found.notes}
        >
          <Timeline project={project} found={found} runs={runs} />
        </Findings>
      )}
    </Loaded>
  );
}

function about(found: Rounds): string {
  const begin = `The rounds begin with ${found.start}.`;
  const stop = found.judge
    ? ` They end when ${found.judge} rates the policy of a round lower than the one before it: Wilcoxon's signed-rank test on the differences by prompt, p below 5%.`
    : "";
  const answers = found.rounds.find((round) => round.answers)?.answers;
  const by = answers ? ` Held-out answers are judged by ${answers.judge}; intervals are 95%.` : "";
  return begin + stop + by;
}

function Timeline({ project, found, runs }: { project: string; found: Rounds; runs: Run[] }) {
  const ids = new Map(runs.map((run) => [run.name.split(".").at(-1) ?? run.name, run.id]));
  return (
    <Table.ScrollContainer minWidth={960}>
      <Table aria-label="Rounds with selection, held-out answers, win rates and costs" verticalSpacing="sm">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Round</Table.Th>
            <Table.Th>Kept and dropped</Table.Th>
            <Table.Th ta="right">Reward of samples</Table.Th>
            <Table.Th ta="right">Held-out reward</Table.Th>
            <Table.Th ta="right">Length</Table.Th>
            <Table.Th>Against the round before</Table.Th>
            <Table.Th>Against {found.start}</Table.Th>
            <Table.Th ta="right">Cost</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {found.rounds.map((round) =>
            round.state === "skipped" ? (
              <Table.Tr key={round.number}>
                <RoundCell project={project} round={round} found={found} run={ids.get(round.stage)} />
                <Table.Td colSpan={7}>
                  <Text size="sm" c="dimmed" style={{ overflowWrap: "anywhere" }}>
                    {round.reason}
                  </Text>
                </Table.Td>
              </Table.Tr>
            ) : (
              <Table.Tr key={round.number} style={{ verticalAlign: "top" }}>
                <RoundCell project={project} round={round} found={found} run={ids.get(round.stage)} />
                <Table.Td>
                  <Kept round={round} />
                </Table.Td>
                <Table.Td ta="right">
                  {round.selection ? (
                    <>
                      <Line>mean {value(round.selection.mean)}</Line>
                      <Line>best {value(round.selection.best)}</Line>
                    </>
                  ) : (
                    <Missing />
                  )}
                </Table.Td>
                <Table.Td ta="right">
                  <Interval found={round.answers?.reward} unit={round.answers?.units} />
                </Table.Td>
                <Table.Td ta="right">
                  <Lengths round={round} />
                </Table.Td>
                <Table.Td>
                  <WinRate found={round.answers?.against_previous} />
                  <Decided round={round} />
                </Table.Td>
                <Table.Td>
                  <WinRate found={round.answers?.against_start} />
                </Table.Td>
                <Table.Td ta="right">
                  <Cost round={round} />
                </Table.Td>
              </Table.Tr>
            ),
          )}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

/** What the judge of the stop rule found, where it compared answers instead of giving rewards. */
function Decided({ round }: { round: Round }) {
  const found = round.decision;
  if (found?.units !== "win_rate") return null;
  return (
    <Line dim>
      {found.judge}: preferred on {percent(found.after.value, 0)} of {count(found.prompts)} prompts
    </Line>
  );
}

function RoundCell({
  project,
  round,
  found,
  run,
}: {
  project: string;
  round: Round;
  found: Rounds;
  run: string | undefined;
}) {
  const { policy } = round;
  return (
    <Table.Td>
      <Stack gap={4} align="flex-start">
        <Group gap="xs" wrap="nowrap">
          <Text size="sm" fw={600}>
            {round.number}
          </Text>
          <Standing round={round} found={found} />
        </Group>
        {policy ? (
          <Link size="xs" to="/p/$project/models/$model" params={{ project, model: policy.name }}>
            {round.stage}
          </Link>
        ) : (
          run && (
            <Link size="xs" to="/p/$project/runs/$run" params={{ project, run }}>
              {round.stage}
            </Link>
          )
        )}
        {policy && <RoundActions project={project} round={round.number} policy={policy} />}
      </Stack>
    </Table.Td>
  );
}

function Standing({ round, found }: { round: Round; found: Rounds }) {
  const whole = { flexShrink: 0 };
  if (round.number === found.result)
    return (
      <Badge variant="filled" style={whole}>
        result
      </Badge>
    );
  if (round.number === found.stopped_after)
    return (
      <Badge color="orange" className="state-badge" style={whole}>
        fell
      </Badge>
    );
  return round.state === "succeeded" ? null : <StateBadge state={round.state} />;
}

function Kept({ round }: { round: Round }) {
  const found = round.selection;
  if (!found) return <Missing />;
  const { tied = 0, equal_texts = 0, single = 0 } = found.dropped;
  const why = [
    tied && `${count(tied)} tied`,
    equal_texts && `${count(equal_texts)} of equal texts`,
    single && `${count(single)} single`,
  ].filter(Boolean);
  return (
    <>
      <Line>
        {count(found.kept_groups)} of {count(found.groups)} prompts
      </Line>
      <Line dim>{why.length ? `dropped: ${why.join(", ")}` : "none dropped"}</Line>
    </>
  );
}

function Lengths({ round }: { round: Round }) {
  const tokens = round.answers?.tokens?.value;
  const characters = round.selection?.characters;
  if (tokens == null && characters == null) return <Missing />;
  return (
    <>
      {tokens != null && <Line>{short(tokens)} tokens</Line>}
      {characters != null && <Line dim>samples {Math.round(characters)} characters</Line>}
    </>
  );
}

function Cost({ round }: { round: Round }) {
  const { device_seconds, sampled_tokens, trained_tokens } = round.cost;
  return (
    <>
      <Line>{seconds(device_seconds)}</Line>
      {sampled_tokens != null && <Line dim>{count(sampled_tokens)} tokens sampled</Line>}
      {trained_tokens != null && <Line dim>{count(trained_tokens)} trained</Line>}
    </>
  );
}

/** A share with its interval, over a scale from 0 to 100% whose middle is a draw. */
function WinRate({ found }: { found: Figure }) {
  if (found?.value == null) return <Missing />;
  const [low, high] = [found.low ?? found.value, found.high ?? found.value];
  return (
    <>
      <Line strong>{percent(found.value, 0)}</Line>
      <svg width={104} height={10} aria-hidden className="win-rate">
        <line x1={2} x2={102} y1={5} y2={5} stroke="var(--mantine-color-default-border)" />
        <line x1={52} x2={52} y1={0} y2={10} stroke="var(--mantine-color-dimmed)" />
        <line
          x1={2 + 100 * low}
          x2={2 + 100 * high}
          y1={5}
          y2={5}
          stroke="var(--mantine-primary-color-filled)"
          strokeWidth={3}
        />
        <circle cx={2 + 100 * found.value} cy={5} r={4} fill="var(--mantine-primary-color-filled)" />
      </svg>
      <Line dim>
        {percent(low, 0)} to {percent(high, 0)}, n {count(found.n)}
      </Line>
    </>
  );
}

function Interval({ found, unit }: { found: Figure; unit?: string }) {
  if (found?.value == null) return <Missing />;
  return (
    <>
      <Line strong>
        {value(found)} {unit}
      </Line>
      {found.low != null && found.high != null && (
        <Line dim>
          {minus(found.low)} to {minus(found.high)}
        </Line>
      )}
    </>
  );
}

function Line({ children, dim, strong }: { children: ReactNode; dim?: boolean; strong?: boolean }) {
  return (
    <Text
      size={dim ? "xs" : "sm"}
      c={dim ? "dimmed" : undefined}
      fw={strong ? 600 : undefined}
      style={{ whiteSpace: "nowrap" }}
    >
      {children}
    </Text>
  );
}

const Missing = () => (
  <Text size="xs" c="dimmed">
    not measured
  </Text>
);

const minus = (of: number) => short(of).replace("-", "−");
const value = (found: Figure) => (found?.value == null ? "–" : minus(found.value));

import { Badge, Group, Stack, Table, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../../api/client";
import { roundsQuery } from "../../../api/runs/pipelines";
import type { Run } from "../../../api/runs/runs";
import { Loaded } from "../../../shared/Feedback";
import { Link } from "../../../shared/links";
import { StateBadge } from "../../../shared/StateBadge";
import { Findings } from "../Findings";
import { RoundActions } from "./RoundActions";
import { Cost, Decided, Interval, Kept, Lengths, Rewards, WinRate } from "./RoundFigures";

type Rounds = Schemas["RoundsReport"];
type Round = Schemas["RoundRow"];

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
            <Table.Th>Against the previous round</Table.Th>
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
                  <Rewards round={round} />
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

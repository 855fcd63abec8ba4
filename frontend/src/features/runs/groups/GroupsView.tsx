import { Button, Group, Slider, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { groupQuery, groupsQuery, type RunGroups } from "../../../api/runs/groups";
import { Empty, Loaded } from "../../../shared/Feedback";
import { count } from "../../../shared/format/format";
import { GroupBody } from "./GroupBody";

/** What an online run sampled to some prompts, step by step: the answers to each, by reward. */
export function GroupsView({
  project,
  run,
  live,
  most,
}: {
  project: string;
  run: string;
  live: boolean;
  /** How many of its steps are kept. */
  most?: number;
}) {
  const query = useQuery(groupsQuery(project, run, live));
  return (
    <Loaded query={query}>
      {(groups) =>
        groups.steps.length ? (
          <Steps project={project} run={run} steps={groups.steps} most={most} />
        ) : (
          <Empty title="No answers yet">
            {live
              ? "They come with the first step."
              : "It ended before its first step; see the log and the timeline."}
          </Empty>
        )
      }
    </Loaded>
  );
}

function Steps({
  project,
  run,
  steps,
  most,
}: {
  project: string;
  run: string;
  steps: RunGroups["steps"];
  most?: number;
}) {
  // The newest, also of those that are yet to come, until someone looks at another.
  const [chosen, choose] = useState<number>();
  const [place, setPlace] = useState(0);
  const last = steps.length - 1;
  const at = Math.min(chosen ?? last, last);
  const step = steps[at]!;
  const group = Math.min(place, step.groups - 1);
  const query = useQuery(groupQuery(project, run, step.step, group));
  return (
    <Stack>
      <Group gap="lg" align="center" wrap="nowrap" maw={720}>
        <Text size="sm" fw={600} w={110} flex="none" role="status">
          Step {count(step.step)}
        </Text>
        {steps.length > 1 && (
          <Slider
            style={{ flex: 1 }}
            thumbLabel="Step"
            min={0}
            max={last}
            step={1}
            value={at}
            label={(one) => steps[one]?.step}
            marks={steps.map((_, one) => ({ value: one }))}
            onChange={(next) => choose(next === last ? undefined : next)}
          />
        )}
      </Group>
      {most !== undefined && (
        <Text size="xs" c="dimmed">
          Answers of at most {count(most)} steps are kept, spread evenly over the run.
        </Text>
      )}
      <Group gap="sm">
        <Button size="xs" variant="default" disabled={group === 0} onClick={() => setPlace(group - 1)}>
          Previous prompt
        </Button>
        <Text size="sm" role="status">
          Prompt {group + 1} of {step.groups}
        </Text>
        <Button
          size="xs"
          variant="default"
          disabled={group === step.groups - 1}
          onClick={() => setPlace(group + 1)}
        >
          Next prompt
        </Button>
        {step.tied > 0 && (
          <Text size="sm" c="dimmed">
            Rewards are tied in {step.tied === step.groups ? "all of them" : `${step.tied} of them`}.
          </Text>
        )}
      </Group>
      <Loaded query={query}>
        {(found) => (
          <GroupBody key={`${step.step}/${found.row}`} group={found} fading={query.isPlaceholderData} />
        )}
      </Loaded>
    </Stack>
  );
}

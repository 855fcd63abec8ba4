import { Button, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { groupQuery, groupsQuery, type RunGroups } from "../../../api/runs/groups";
import { Empty, Loaded } from "../../../shared/Feedback";
import { count } from "../../../shared/format/format";
import { StepSlider, useStepPlace } from "../StepSlider";
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
              ? "They appear with the first step."
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
  const [at, choose] = useStepPlace(steps.length);
  const [place, setPlace] = useState(0);
  const step = steps[at]!;
  const group = Math.min(place, step.groups - 1);
  const query = useQuery(groupQuery(project, run, step.step, group));
  return (
    <Stack>
      <StepSlider name={`Step ${count(step.step)}`} steps={steps} place={at} onChoose={choose} />
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

import { Button, Card, Group, SimpleGrid, Stack, Text, ThemeIcon, Title } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { IconCheck } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { Schemas } from "../../api/client";
import { firstStepsQuery } from "../../api/runs/inbox";
import { useMay } from "../../api/accounts/session";
import { LinkButton } from "../../shared/links";

type Steps = Schemas["FirstSteps"];

/** What a newcomer tries first, until it is done or hidden. */
export function FirstSteps({ project }: { project: string }) {
  const [hidden, setHidden] = useLocalStorage({
    key: `steerboard-first-steps-${project}`,
    defaultValue: false,
    getInitialValueInEffect: false,
  });
  const mayWrite = useMay(project, "write");
  const query = useQuery({ ...firstStepsQuery(project), enabled: mayWrite && !hidden });
  const steps = query.data;
  if (hidden || !steps) return null;
  if (steps.asked && steps.imported && steps.ranked >= steps.to_rank) return null;
  return (
    <section aria-labelledby="first-steps">
      <Text mb="md">
        Steerboard aligns language models: it trains one to follow a score and compares it with other methods,
        and people and judges rank the answers.
      </Text>
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h4" id="first-steps">
          First steps
        </Title>
        <Button variant="subtle" size="compact-sm" color="gray" onClick={() => setHidden(true)}>
          Hide
        </Button>
      </Group>
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        <Ask project={project} steps={steps} />
        <Step
          title="Import your pairs"
          done={steps.imported}
          text="Chosen and rejected answers, from a file or the hub."
        >
          <LinkButton component="a" variant="light" to="/p/$project/imports" params={{ project }}>
            Import a dataset
          </LinkButton>
        </Step>
        <Rank project={project} steps={steps} />
      </SimpleGrid>
    </section>
  );
}

function Ask({ project, steps }: { project: string; steps: Steps }) {
  const title = "Ask for 5, 0 and −5";
  if (steps.steered === null)
    return (
      <Step
        title={title}
        done={false}
        text="A recipe trains a model that takes a score, and compares it with the other methods."
      >
        <LinkButton
          component="a"
          variant="light"
          to="/p/$project/launch"
          params={{ project }}
          search={{ recipe: "offline-rlhf" }}
        >
          See the recipe
        </LinkButton>
      </Step>
    );
  return (
    <Step
      title={title}
      done={steps.asked}
      text={`See ${steps.steered} answer one prompt at three scores, side by side.`}
    >
      <LinkButton
        component="a"
        variant="light"
        to="/p/$project/playground"
        params={{ project }}
        search={{ model: steps.steered }}
      >
        Open the playground
      </LinkButton>
    </Step>
  );
}

function Rank({ project, steps }: { project: string; steps: Steps }) {
  const done = steps.ranked >= steps.to_rank;
  const title = "Rank five answers blind";
  if (steps.campaign === null)
    return (
      <Step
        title={title}
        done={done}
        text="An evaluation asks for rankings of its answers, without the names of the models."
      >
        <LinkButton component="a" variant="light" to="/p/$project/evaluations" params={{ project }}>
          Evaluations
        </LinkButton>
      </Step>
    );
  const text = steps.ranked
    ? `${steps.ranked} of ${steps.to_rank} ranked, without the names of the models.`
    : "Put the better answer first, without the names of the models.";
  return (
    <Step title={title} done={done} text={text}>
      <LinkButton
        component="a"
        variant="light"
        to="/p/$project/rank/$campaign"
        params={{ project, campaign: steps.campaign }}
      >
        {steps.ranked ? "Continue ranking" : "Start ranking"}
      </LinkButton>
    </Step>
  );
}

function Step({
  title,
  done,
  text,
  children,
}: {
  title: string;
  done: boolean;
  text: string;
  children: ReactNode;
}) {
  return (
    <Card withBorder padding="md">
      <Stack gap="xs" h="100%" justify="space-between" align="flex-start">
        <div>
          <Group gap={6} mb={4} wrap="nowrap">
            {done && (
              <ThemeIcon size={20} radius="xl" color="green" aria-label="Done" role="img">
                <IconCheck size={14} />
              </ThemeIcon>
            )}
            <Title order={3} size="h5">
              {title}
            </Title>
          </Group>
          <Text size="sm" c="dimmed" style={{ overflowWrap: "anywhere" }}>
            {text}
          </Text>
        </div>
        {children}
      </Stack>
    </Card>
  );
}

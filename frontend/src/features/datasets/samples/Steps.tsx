import { Badge, Group, Paper, Text } from "@mantine/core";
import { short } from "../../../shared/format/format";

interface Properties {
  steps: string[];
  /** One for each step: whether it is right, or how likely it is. */
  labels: (boolean | number)[];
}

/** The steps of an answer, each with its label. */
export function Steps({ steps, labels }: Properties) {
  return (
    <Paper withBorder p="sm" component="ol" aria-label="Steps" m={0} style={{ listStyle: "none" }}>
      {steps.map((step, at) => (
        <Group key={at} component="li" justify="space-between" align="flex-start" wrap="nowrap" py={4}>
          <Text size="xs" c="dimmed" flex="none" w={24}>
            {at + 1}
          </Text>
          <pre className="text" style={{ flex: 1 }}>
            {step}
          </pre>
          <Label label={labels[at]} />
        </Group>
      ))}
    </Paper>
  );
}

function Label({ label }: { label: boolean | number | undefined }) {
  if (label === undefined) return null;
  const shown = typeof label === "number" ? short(label) : label ? "right" : "wrong";
  return (
    <Badge flex="none" size="sm" color={Number(label) >= 0.5 ? "green" : "red"} className="state-badge">
      {shown}
    </Badge>
  );
}

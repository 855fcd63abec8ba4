import { Badge, Group, type GroupProps, Text } from "@mantine/core";
import { type Condition, SCORE, titleOf, type Values, valuesOf } from "./forms/condition";
import { short, signed } from "./format/format";

interface Properties extends GroupProps {
  /** In the order in which they are shown. */
  values: Values;
  label: string;
}

/** Attributes, each with its value. What has no value is not in `values`. */
export function AttributeBadges({ values, label, ...others }: Properties) {
  return (
    <Group gap={4} role="list" aria-label={label} {...others}>
      {Object.entries(values).map(([name, value]) => (
        <Badge key={name} size="sm" color="helm" role="listitem" flex="none" className="state-badge">
          {titleOf(name)} {name === SCORE ? signed(value, 1) : short(value).replace(/^-/, "−")}
        </Badge>
      ))}
    </Group>
  );
}

/** What a policy was asked for; nothing for one that takes no condition. */
export function Asked({ condition }: { condition: Condition | null | undefined }) {
  if (condition === null || condition === undefined) return null;
  if (condition === "")
    return (
      <Text size="xs" c="dimmed">
        asked for nothing
      </Text>
    );
  return <AttributeBadges values={valuesOf(condition)} label="Asked for" />;
}

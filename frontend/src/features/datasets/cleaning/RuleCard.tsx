import { Badge, Button, Card, Group, Stack, Switch } from "@mantine/core";
import { type ReactNode, useState } from "react";
import type { Schemas } from "../../../api/client";
import { count } from "../../../shared/format/format";
import { DroppedPair } from "./DroppedPair";

/** One rule: its switch, its settings, how many pairs it drops, and some of them. */
export function RuleCard({
  rule,
  on,
  onChange,
  children,
}: {
  rule: Schemas["RuleCount"];
  on: boolean;
  onChange: (on: boolean) => void;
  children?: ReactNode;
}) {
  const [open, setOpen] = useState(false);
  const name = title(rule.rule);
  return (
    <Card withBorder p="sm" role="group" aria-label={name}>
      <Group justify="space-between" align="flex-start" gap="sm">
        <Switch
          label={name}
          description={`Dropped where ${rule.title}`}
          checked={on}
          onChange={(event) => onChange(event.currentTarget.checked)}
          style={{ flex: "1 1 240px" }}
        />
        <Group gap="xs">
          {rule.examples.length > 0 && (
            <Button size="compact-sm" variant="subtle" aria-expanded={open} onClick={() => setOpen(!open)}>
              {open ? "Hide examples" : "Examples"}
            </Button>
          )}
          <Badge color={rule.rows ? "orange" : "gray"} className="state-badge">
            {rule.on ? `${count(rule.rows)} ${rule.rows === 1 ? "pair" : "pairs"}` : "off"}
          </Badge>
        </Group>
      </Group>
      {children}
      {open && rule.examples.length > 0 && (
        <Stack gap="xs" mt="sm">
          {rule.examples.map((row) => (
            <DroppedPair key={row.row} row={row} />
          ))}
        </Stack>
      )}
    </Card>
  );
}

export function title(rule: string): string {
  const words = rule.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

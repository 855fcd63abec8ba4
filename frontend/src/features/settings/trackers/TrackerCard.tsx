import { Badge, Button, Code, Group, Stack, Switch, Text, Title } from "@mantine/core";
import { KINDS, type Tracker } from "../../../api/accounts/trackers";
import { When } from "../../../shared/When";
import type { CardActions } from "../ManagedList";

interface Properties extends CardActions {
  tracker: Tracker;
}

export function TrackerCard({ tracker, onChange, onActive, onDelete }: Properties) {
  return (
    <Stack gap="xs">
      <Group justify="space-between" align="flex-start">
        <div style={{ minWidth: 0 }}>
          <Title order={2} size="h5" style={{ overflowWrap: "anywhere" }}>
            {tracker.name}
          </Title>
          <Group gap="xs">
            <Badge variant="outline" miw="max-content">
              {KINDS[tracker.kind]}
            </Badge>
            <Code style={{ overflowWrap: "anywhere" }}>{placeOf(tracker)}</Code>
          </Group>
        </div>
        <Switch
          label="Active"
          aria-label={`${tracker.name} is active`}
          checked={tracker.active}
          onChange={(event) => onActive(event.currentTarget.checked)}
        />
      </Group>
      <Text size="sm" component="div">
        {tracker.last_export_at ? (
          <>
            {tracker.runs} {tracker.runs === 1 ? "run" : "runs"} of kind {tracker.run_kinds.join(", ")}, last
            export <When at={tracker.last_export_at} />
          </>
        ) : (
          `Nothing has been exported yet. Runs of kind ${tracker.run_kinds.join(", ")} are exported.`
        )}
      </Text>
      {tracker.last_error && (
        <Text size="sm" c="red" style={{ overflowWrap: "anywhere" }}>
          {tracker.last_error}
        </Text>
      )}
      <Group gap="xs">
        <Button size="xs" variant="default" onClick={onChange} aria-label={`Change ${tracker.name}`}>
          Change
        </Button>
        <Button
          size="xs"
          variant="light"
          color="red"
          onClick={onDelete}
          aria-label={`Delete ${tracker.name}`}
        >
          Delete
        </Button>
      </Group>
    </Stack>
  );
}

function placeOf({ folder, settings }: Tracker): string {
  if (folder) return folder;
  return ("url" in settings && settings.url) || "wandb.ai";
}

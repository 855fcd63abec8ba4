import { Alert, List } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import type { Schemas } from "../api/client";

/** What the owner of a run must know though it works, before it starts and at any time after. */
export function RunWarnings({ warnings }: { warnings: Schemas["RunWarning"][] }) {
  if (warnings.length === 0) return null;
  const serious = warnings.some((one) => one.level === "serious");
  return (
    <Alert
      color={serious ? "red" : "orange"}
      variant="light"
      role="note"
      icon={<IconAlertTriangle />}
      title={serious ? "Serious warning" : "Warning"}
    >
      <List size="sm">
        {warnings.map((one) => (
          <List.Item key={one.message}>{one.message}</List.Item>
        ))}
      </List>
    </Alert>
  );
}

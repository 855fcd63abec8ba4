import { Alert, List } from "@mantine/core";
import { IconPencilExclamation } from "@tabler/icons-react";
import type { Schemas } from "../api/client";
import { count } from "./format/format";
import { Link, useProject } from "./links";

type Change = Schemas["HeldOutChange"];

/** Versions of a dataset in which people changed held-out rows, wherever figures are measured on these. */
export function HeldOutChanges({ changes }: { changes: readonly Change[] }) {
  const project = useProject();
  if (!changes.length) return null;
  return (
    <Alert
      color="orange"
      variant="light"
      icon={<IconPencilExclamation />}
      title="Held-out rows were changed by people: figures measured on them are not those of the original labels"
    >
      <List size="sm">
        {changes.map((change) => (
          <List.Item key={change.dataset_id}>
            <Link
              inherit
              c="inherit"
              underline="always"
              to="/p/$project/datasets/$dataset"
              params={{ project, dataset: change.dataset_id }}
              search={{}}
            >
              {change.dataset}
            </Link>
            : {words(change)}
          </List.Item>
        ))}
      </List>
    </Alert>
  );
}

function words({ flipped, edited, dropped }: Change): string {
  return [
    flipped && `${count(flipped)} flipped`,
    edited && `${count(edited)} edited`,
    dropped && `${count(dropped)} dropped`,
  ]
    .filter(Boolean)
    .join(", ");
}

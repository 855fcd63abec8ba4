import { Button, Text } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "../../../api/accounts/session";
import type { BulkChange } from "../../../api/runs/list";
import { ActionBar } from "../../../shared/ActionBar";
import { BulkDialog } from "./BulkDialog";
import { TagDialog } from "./TagDialog";

interface Properties {
  project: string;
  chosen: ReadonlySet<string>;
  /** Whether the list shows archived runs. */
  archived: boolean;
  onChosen: (runs: ReadonlySet<string>) => void;
}

/** What can be done with the runs that are selected. */
export function SelectionBar({ project, chosen, archived, onChosen }: Properties) {
  const navigate = useNavigate();
  const mayRun = useMay(project, "run");
  const [action, setAction] = useState<BulkChange["action"] | null>(null);
  const runs = [...chosen];
  const close = () => setAction(null);
  const done = () => {
    close();
    onChosen(new Set());
  };
  const button = (label: string, what: BulkChange["action"], red = false) => (
    <Button
      variant={red ? "light" : "default"}
      color={red ? "red" : undefined}
      onClick={() => setAction(what)}
    >
      {label}
    </Button>
  );
  return (
    <>
      <ActionBar
        says={
          <Text size="sm" role="status">
            {runs.length} selected
          </Text>
        }
      >
        <Button variant="subtle" color="gray" onClick={() => onChosen(new Set())}>
          Clear
        </Button>
        {mayRun && (
          <>
            {button("Tag", "tag")}
            {archived ? button("Restore", "restore") : button("Archive", "archive")}
            {button("Cancel runs", "cancel")}
            {button("Delete", "delete", true)}
          </>
        )}
        <Button
          disabled={runs.length < 2}
          onClick={() => void navigate({ to: "/p/$project/compare", params: { project }, search: { runs } })}
        >
          {runs.length >= 2 ? `Compare ${runs.length}` : "Select two to compare"}
        </Button>
      </ActionBar>
      {action === "tag" && <TagDialog project={project} runs={runs} onClose={close} onDone={done} />}
      {action && action !== "tag" && (
        <BulkDialog
          key={action}
          project={project}
          action={action}
          runs={runs}
          onMore={(more) => onChosen(new Set([...runs, ...more]))}
          onClose={close}
          onDone={done}
        />
      )}
    </>
  );
}

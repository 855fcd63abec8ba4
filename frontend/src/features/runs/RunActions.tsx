import { Button, Group, Tooltip } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { everything } from "../../api/client";
import { cancelRun, pauseRun, resumeRun, type RunDetail } from "../../api/runs/runs";
import { useMay } from "../../api/accounts/session";
import { runName } from "../../shared/format/runName";
import { LinkButton, useProject } from "../../shared/links";
import { ChangeSettings } from "./ChangeSettings";
import { Confirm } from "../../shared/Confirm";

/** Kinds that no launch form starts. */
const ASKED_FOR = ["push", "gguf", "history"];

/** The settings that the failed run's error suggests. */
type Fix = { changes: Record<string, unknown>; says: string };

export function RunActions({ run }: { run: RunDetail }) {
  const project = useProject();
  const mayRun = useMay(project, "run");
  const client = useQueryClient();
  const [asking, ask] = useDisclosure();
  const refresh = () => client.invalidateQueries({ queryKey: everything(project) });
  const cancel = useMutation({
    mutationFn: () => cancelRun(project, run.id),
    onSuccess: async () => {
      ask.close();
      notifications.show({
        message: `${runName(run)} will end at its worker's next heartbeat`,
        color: "gray",
      });
      await refresh();
    },
  });
  const resume = useMutation({
    mutationFn: (config: Record<string, unknown>) => resumeRun(project, run.id, config),
    onSuccess: refresh,
    onError: (error) => notifications.show({ title: "Resume failed", message: error.message, color: "red" }),
  });
  const pause = useMutation({
    mutationFn: () => pauseRun(project, run.id),
    onSuccess: refresh,
    onError: (error) => notifications.show({ title: "Pause failed", message: error.message, color: "red" }),
  });
  if (!mayRun) return null;
  // One that kept nothing of its work is not resumed, though the same request starts it.
  const again = run.continues || run.state === "paused" ? "Resume" : "Retry";
  const fix = run.error?.fix as Fix | null | undefined;
  const active = ["pending", "queued", "running", "paused"].includes(run.state);
  return (
    <Group gap="xs">
      {!("evaluation" in run.config) && !ASKED_FOR.includes(run.kind) && (
        <LinkButton
          component="a"
          variant="default"
          to="/p/$project/launch/$kind"
          params={{ project, kind: run.method ?? run.kind }}
          search={{ from: run.id }}
        >
          Clone with changes
        </LinkButton>
      )}
      {run.resumable && (
        <Tooltip label={run.resume_hint}>
          <Button variant="default" loading={resume.isPending} onClick={() => resume.mutate({})}>
            {again}
          </Button>
        </Tooltip>
      )}
      {run.resumable && fix && (
        <Tooltip label={`${run.resume_hint} The result changes by rounding only.`}>
          <Button
            maw="100%"
            h="auto"
            mih={36}
            py={4}
            styles={{ label: { whiteSpace: "normal" } }} // its text may be longer than a phone is wide
            loading={resume.isPending}
            onClick={() => resume.mutate(fix.changes)}
          >
            {again} with {fix.says}
          </Button>
        </Tooltip>
      )}
      {run.pausable && (
        <Tooltip label="It saves a checkpoint after its current step and frees its device, until it is resumed.">
          <Button
            variant="default"
            loading={pause.isPending}
            disabled={run.pause_requested_at !== null}
            onClick={() => pause.mutate()}
          >
            {run.pause_requested_at ? "Pausing" : "Pause"}
          </Button>
        </Tooltip>
      )}
      {Object.keys(run.changeable).length > 0 && <ChangeSettings run={run} />}
      {active && (
        <Button color="red" variant="light" onClick={ask.open} disabled={run.cancel_requested_at !== null}>
          {run.cancel_requested_at ? "Cancelling" : "Cancel"}
        </Button>
      )}
      <Confirm
        title={asking ? `Cancel ${runName(run)}?` : null}
        keep="Keep running"
        go="Cancel the run"
        pending={cancel.isPending}
        error={cancel.error}
        onClose={ask.close}
        onGo={() => cancel.mutate()}
      >
        Its process is stopped, and runs that wait for its outputs are cancelled too. Its checkpoints are
        kept, so it can be resumed.
      </Confirm>
    </Group>
  );
}

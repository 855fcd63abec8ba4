import { Button } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useMay } from "../../api/accounts/session";
import { everything } from "../../api/client";
import { resumeRun, type Run } from "../../api/runs/runs";
import { runName } from "../format/runName";
import { useProject } from "../links";

/** Resumes a paused run where it is listed. */
export function ResumeRun({ run }: { run: Run }) {
  const project = useProject();
  const mayRun = useMay(project, "run");
  const client = useQueryClient();
  const resume = useMutation({
    mutationFn: () => resumeRun(project, run.id, {}),
    onSuccess: () => client.invalidateQueries({ queryKey: everything(project) }),
    onError: (error) => notifications.show({ title: "Resume failed", message: error.message, color: "red" }),
  });
  if (!mayRun) return null;
  return (
    <Button
      variant="default"
      size="compact-xs"
      mt={4}
      display="block"
      aria-label={`Resume ${runName(run)}`}
      loading={resume.isPending}
      onClick={() => resume.mutate()}
    >
      Resume
    </Button>
  );
}

import { Button, Group, NumberInput, Popover, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { evaluationKeys } from "../../../api/evaluation/evaluations";
import { changeBudget, type Judge, retryJudge } from "../../../api/evaluation/judges";
import { Failure } from "../../../shared/Feedback";

interface Properties {
  project: string;
  evaluation: string;
  judge: Judge;
}

/** Raises, lowers or removes a judge's budget; one that has stopped continues with the new one. */
export function Budget({ project, evaluation, judge }: Properties) {
  const client = useQueryClient();
  const [opened, { toggle, close }] = useDisclosure();
  const now = (judge.settings as { budget?: number | null }).budget ?? null;
  const [budget, setBudget] = useState<number | null>(now);
  const stopped = judge.state === "failed";
  const change = useMutation({
    mutationFn: async () => {
      await changeBudget(project, evaluation, judge.id, budget);
      if (stopped) await retryJudge(project, evaluation, judge.id);
    },
    onSuccess: async () => {
      close();
      await client.invalidateQueries({ queryKey: evaluationKeys.all(project) });
    },
  });
  return (
    <Popover opened={opened} onChange={(open) => !open && close()} trapFocus withinPortal>
      <Popover.Target>
        <Button size="compact-sm" variant="default" onClick={toggle}>
          Budget
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            change.mutate();
          }}
        >
          <Stack gap="sm" w={240}>
            <NumberInput
              label="Budget"
              description="Empty: no limit"
              min={0}
              value={budget ?? ""}
              onChange={(value) => setBudget(typeof value === "number" ? value : null)}
            />
            {change.error && <Failure error={change.error} />}
            <Group justify="flex-end">
              <Button size="xs" type="submit" loading={change.isPending}>
                {stopped ? "Save and resume" : "Save"}
              </Button>
            </Group>
          </Stack>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}

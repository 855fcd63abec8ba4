import { Button, Card, Group, NumberInput, Progress, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import { quotaQuery, setQuota } from "../../api/accounts/accounts";
import { sessionQuery, useMay } from "../../api/accounts/session";
import type { Schemas } from "../../api/client";
import { Failure, Loaded } from "../../shared/Feedback";

const hours = (value: number) => value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 2 : 0 });

const dayOf = (time: string) =>
  new Date(time).toLocaleDateString("en-GB", { day: "numeric", month: "long", timeZone: "UTC" });

/** The device-hours that a project has used this month, of those that it may use; the operator sets how many. */
export function Quota({ project }: { project: string }) {
  const quota = useQuery(quotaQuery(project));
  const { data: session } = useSuspenseQuery(sessionQuery);
  const owns = useMay(project, "admin");
  return (
    <Card withBorder>
      <Stack gap="xs">
        <Title order={2} size="h5">
          Device-hours this month
        </Title>
        <Loaded query={quota} rows={2}>
          {(found) => (
            <>
              <Used quota={found} />
              {session.is_operator && owns && (
                <QuotaForm key={found.device_hours} project={project} quota={found} />
              )}
            </>
          )}
        </Loaded>
      </Stack>
    </Card>
  );
}

function Used({ quota }: { quota: Schemas["QuotaOut"] }) {
  const limit = quota.device_hours ?? null;
  const used = quota.used_device_hours;
  if (limit === null)
    return (
      <Text size="sm">
        {hours(used)} used since {dayOf(quota.since)}. There is no quota.
      </Text>
    );
  const full = used >= limit;
  const text = `${hours(used)} of ${hours(limit)} used since ${dayOf(quota.since)}`;
  return (
    <>
      <Text size="sm">{text}.</Text>
      <Progress
        value={full ? 100 : (100 * used) / limit}
        color={full ? "red" : undefined}
        aria-label={text}
      />
      {full && (
        <Text size="sm" role="status">
          No run starts or resumes before {dayOf(quota.until)} (UTC), or until the operator of this server
          raises the quota. What runs now continues.
        </Text>
      )}
    </>
  );
}

function QuotaForm({ project, quota }: { project: string; quota: Schemas["QuotaOut"] }) {
  const client = useQueryClient();
  const [limit, setLimit] = useState<number | string>(quota.device_hours ?? "");
  const save = useMutation({
    mutationFn: () => setQuota(project, limit === "" ? null : Number(limit)),
    onSuccess: () => client.invalidateQueries({ queryKey: quotaQuery(project).queryKey }),
  });
  const unchanged = (limit === "" ? null : Number(limit)) === (quota.device_hours ?? null);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate();
      }}
    >
      <Group align="flex-end" gap="sm">
        <NumberInput
          label="Quota, in device-hours a month"
          description="If empty, there is no limit."
          min={0}
          max={1e9}
          value={limit}
          onChange={setLimit}
        />
        <Button type="submit" variant="default" disabled={unchanged} loading={save.isPending}>
          Set the quota
        </Button>
      </Group>
      {save.error && <Failure error={save.error} />}
    </form>
  );
}

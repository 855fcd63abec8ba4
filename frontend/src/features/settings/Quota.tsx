import { Button, Card, Group, NumberInput, Progress, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { quotaQuery, setQuota } from "../../api/accounts/accounts";
import { sessionQuery, useMay } from "../../api/accounts/session";
import type { Schemas } from "../../api/client";
import { Failure, Loaded } from "../../shared/Feedback";
import { bytes } from "../../shared/format/format";

const hours = (value: number) => value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 2 : 0 });

const dayOf = (time: string) =>
  new Date(time).toLocaleDateString("en-GB", { day: "numeric", month: "long", timeZone: "UTC" });

const GIGA = 1e9;

/** What a project has used of what it may use; the operator sets how much that is. */
export function Quota({ project }: { project: string }) {
  const quota = useQuery(quotaQuery(project));
  const { data: session } = useSuspenseQuery(sessionQuery);
  const owns = useMay(project, "admin");
  const sets = session.is_operator && owns;
  return (
    <Card withBorder>
      <Loaded query={quota} rows={4}>
        {(shown) => (
          <Stack gap="lg">
            <Stack gap="xs">
              <Title order={2} size="h5">
                Device-hours this month
              </Title>
              <Hours quota={shown} />
              {sets && (
                <QuotaForm
                  key={shown.device_hours}
                  project={project}
                  label="Quota, in device-hours a month"
                  button="Set the quota"
                  limit={shown.device_hours}
                  change={(device_hours) => ({ device_hours })}
                />
              )}
            </Stack>
            <Stack gap="xs">
              <Title order={2} size="h5">
                Storage
              </Title>
              <Storage quota={shown} />
              {sets && (
                <QuotaForm
                  key={shown.storage_bytes}
                  project={project}
                  label="Storage quota, in GB"
                  button="Set the storage quota"
                  limit={shown.storage_bytes === null ? null : shown.storage_bytes / GIGA}
                  change={(limit) => ({ storage_bytes: limit === null ? null : Math.round(limit * GIGA) })}
                />
              )}
            </Stack>
          </Stack>
        )}
      </Loaded>
    </Card>
  );
}

function Hours({ quota }: { quota: Schemas["QuotaOut"] }) {
  const { device_hours: limit, used_device_hours: used } = quota;
  const since = `used since ${dayOf(quota.since)}`;
  return (
    <Used used={used} limit={limit} text={(of) => `${hours(used)}${of} ${since}`} shown={hours}>
      No run starts or resumes before {dayOf(quota.until)} (UTC), or until the operator of this server raises
      the quota. What runs now continues.
    </Used>
  );
}

function Storage({ quota }: { quota: Schemas["QuotaOut"] }) {
  const { datasets, models, checkpoints, uploads } = quota.used_storage;
  const parts = { datasets, models, checkpoints, uploads };
  return (
    <>
      <Used
        used={quota.used_storage_bytes}
        limit={quota.storage_bytes}
        text={(of) => `${bytes(quota.used_storage_bytes)}${of} used`}
        shown={bytes}
      >
        Nothing is imported, uploaded or started until something is deleted, or the operator of this server
        raises the quota. What runs now continues.
      </Used>
      <Text size="xs" c="dimmed">
        {Object.entries(parts)
          .map(([name, size]) => `${name} ${bytes(size)}`)
          .join(", ")}
      </Text>
    </>
  );
}

interface UsedProperties {
  used: number;
  limit: number | null;
  /** The sentence without its full stop; `of`: ` of LIMIT`, or nothing. */
  text: (of: string) => string;
  shown: (value: number) => string;
  /** What follows when it is used up. */
  children: ReactNode;
}

function Used({ used, limit, text, shown, children }: UsedProperties) {
  if (limit === null) return <Text size="sm">{text("")}. There is no quota.</Text>;
  const full = used >= limit;
  const label = text(` of ${shown(limit)}`);
  return (
    <>
      <Text size="sm">{label}.</Text>
      <Progress
        value={full ? 100 : (100 * used) / limit}
        color={full ? "red" : undefined}
        aria-label={label}
      />
      {full && (
        <Text size="sm" role="status">
          {children}
        </Text>
      )}
    </>
  );
}

interface FormProperties {
  project: string;
  label: string;
  button: string;
  limit: number | null;
  change: (limit: number | null) => Schemas["QuotaChange"];
}

function QuotaForm({ project, label, button, limit: before, change }: FormProperties) {
  const client = useQueryClient();
  const [limit, setLimit] = useState<number | string>(before ?? "");
  const chosen = limit === "" ? null : Number(limit);
  const save = useMutation({
    mutationFn: () => setQuota(project, change(chosen)),
    onSuccess: () => client.invalidateQueries({ queryKey: quotaQuery(project).queryKey }),
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate();
      }}
    >
      <Group align="flex-end" gap="sm">
        <NumberInput
          label={label}
          description="If empty, there is no limit."
          min={0}
          max={1e9}
          value={limit}
          onChange={setLimit}
        />
        <Button type="submit" variant="default" disabled={chosen === before} loading={save.isPending}>
          {button}
        </Button>
      </Group>
      {save.error && <Failure error={save.error} />}
    </form>
  );
}

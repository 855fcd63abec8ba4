import {
  Checkbox,
  Input,
  MultiSelect,
  PasswordInput,
  SegmentedControl,
  Text,
  TextInput,
} from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Schemas } from "../../../api/client";
import {
  changeTracker,
  createTracker,
  KINDS,
  type Tracker,
  type TrackerKind,
  trackersQuery,
} from "../../../api/accounts/trackers";
import { runKindsQuery } from "../../../api/runs/runKinds";
import { SendForm } from "../../../shared/forms/SendForm";

type Settings = Schemas["TrackerCreate"]["settings"];
type Field = "url" | "experiment" | "user" | "entity" | "project";

/** The fields of each kind, in order. */
const FIELDS: Record<TrackerKind, readonly Field[]> = {
  mlflow: ["url", "experiment", "user"],
  wandb: ["url", "entity", "project"],
  tensorboard: [],
  trackio: ["project"],
};
const LABELS: Record<Field, string> = {
  url: "URL",
  experiment: "Experiment",
  user: "User",
  entity: "Team",
  project: "Project",
};

/** Makes a tracker, or changes `tracker`. */
export function TrackerForm({
  project,
  tracker,
  onDone,
}: {
  project: string;
  tracker: Tracker | null;
  onDone: () => void;
}) {
  const client = useQueryClient();
  const kinds = useQuery(runKindsQuery(project));
  const [name, setName] = useState(tracker?.name ?? "");
  const [kind, setKind] = useState<TrackerKind>(tracker?.kind ?? "mlflow");
  const [fields, setFields] = useState<Partial<Record<Field, string>>>(() => textsOf(tracker));
  const [offline, setOffline] = useState(isOffline(tracker));
  const [secret, setSecret] = useState("");
  const [runKinds, setRunKinds] = useState<string[]>(tracker?.run_kinds ?? ["train"]);
  const needsUrl = kind === "mlflow";
  const takesSecret = kind === "mlflow" || (kind === "wandb" && !offline);
  const movesAway = tracker?.has_secret && (textsOf(tracker).url ?? "") !== (fields.url ?? "").trim();
  const body = {
    settings: settingsOf(kind, fields, offline),
    run_kinds: runKinds as Tracker["run_kinds"],
    ...(takesSecret && secret ? { secret } : {}),
  };
  const save = useMutation({
    mutationFn: async () =>
      tracker
        ? changeTracker(project, tracker.id, body)
        : createTracker(project, { name: name.trim(), ...body }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: trackersQuery(project).queryKey });
      onDone();
    },
  });
  return (
    <SendForm
      send={save}
      label={tracker ? "Save" : "Add"}
      disabled={!runKinds.length || (needsUrl && !fields.url?.trim()) || (!tracker && !name.trim())}
      onLeave={onDone}
    >
      {!tracker && (
        <>
          <TextInput
            label="Name"
            required
            maxLength={128}
            autoComplete="off"
            data-autofocus
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Input.Wrapper label="Tracker" labelElement="div">
            <SegmentedControl
              fullWidth
              aria-label="Tracker"
              data={Object.entries(KINDS).map(([value, label]) => ({ value, label }))}
              value={kind}
              onChange={(value) => setKind(value as TrackerKind)}
            />
          </Input.Wrapper>
        </>
      )}
      {kind === "wandb" && (
        <Checkbox
          label="Offline: write files on the server's disk, for wandb sync"
          checked={offline}
          onChange={(event) => setOffline(event.currentTarget.checked)}
        />
      )}
      {FIELDS[kind]
        .filter((field) => !(offline && field === "url"))
        .map((field) => (
          <TextInput
            key={field}
            label={LABELS[field]}
            required={needsUrl && field === "url"}
            type={field === "url" ? "url" : "text"}
            description={describe(kind, field, project)}
            autoComplete="off"
            value={fields[field] ?? ""}
            onChange={(event) => setFields({ ...fields, [field]: event.currentTarget.value })}
          />
        ))}
      {takesSecret && (
        <PasswordInput
          label={kind === "wandb" ? "API key" : fields.user ? "Password" : "Token"}
          description={
            movesAway
              ? "The stored one belongs to the former URL, so enter it again."
              : tracker?.has_secret
                ? "One is stored. Leave this empty to keep it."
                : "Stored sealed, and never shown again."
          }
          autoComplete="new-password"
          value={secret}
          onChange={(event) => setSecret(event.currentTarget.value)}
        />
      )}
      {FIELDS[kind].length === 0 && (
        <Text size="sm" c="dimmed">
          Event files are written on the server&apos;s disk, a folder for each run.
        </Text>
      )}
      <MultiSelect
        label="Kinds of runs"
        description="Only runs that begin from now on are exported."
        required
        data={[...new Set([...(kinds.data?.map((one) => one.kind) ?? []), ...runKinds])]}
        value={runKinds}
        onChange={setRunKinds}
      />
    </SendForm>
  );
}

function textsOf(tracker: Tracker | null): Partial<Record<Field, string>> {
  if (!tracker) return {};
  const settings = tracker.settings as Partial<Record<Field, string | null>>;
  return Object.fromEntries(FIELDS[tracker.kind].map((field) => [field, settings[field] ?? ""]));
}

const isOffline = (tracker: Tracker | null) =>
  tracker !== null && "mode" in tracker.settings && tracker.settings.mode === "offline";

function settingsOf(kind: TrackerKind, fields: Partial<Record<Field, string>>, offline: boolean): Settings {
  const given = Object.fromEntries(
    FIELDS[kind]
      .map((field) => [field, fields[field]?.trim()] as const)
      .filter(([field, text]) => text && !(offline && field === "url")),
  );
  return { kind, ...given, ...(kind === "wandb" && offline ? { mode: "offline" } : {}) } as Settings;
}

function describe(kind: TrackerKind, field: Field, project: string): string {
  if (field === "url")
    return kind === "mlflow"
      ? "The tracking server. Private addresses are refused unless the operator allows them."
      : "Only for a server of your own, which the operator has to allow.";
  if (field === "user") return "Only where the server wants a user and a password.";
  if (field === "entity") return "By default that of the key.";
  return `By default the name of this project, ${project}.`;
}

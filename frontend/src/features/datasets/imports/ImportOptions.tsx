import {
  Alert,
  Button,
  Card,
  NumberInput,
  Radio,
  Select,
  Stack,
  Switch,
  Text,
  TextInput,
  Title,
} from "@mantine/core";
import { useDebouncedCallback, useDisclosure } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useRef, useState } from "react";
import type { Schemas } from "../../../api/client";
import { changeImport, formatsQuery, type Import, importQuery } from "../../../api/datasets/imports";
import { Failure } from "../../../shared/Feedback";
import { Attributes } from "./Attributes";
import { UnusedColumns } from "./UnusedColumns";

const WAIT_MS = 400;
type Changes = Schemas["ImportChange"];

interface Properties {
  project: string;
  found: Import;
  onSaving: (saving: boolean) => void;
}

/** How the file's columns are used. Every change is saved immediately. */
export function ImportOptions({ project, found, onSaving }: Properties) {
  const client = useQueryClient();
  const { data: readable } = useQuery(formatsQuery(project));
  const [name, setName] = useState(found.name);
  const save = useMutation({
    mutationFn: (body: Changes) => changeImport(project, found.id, body),
    onSuccess: (next) => client.setQueryData(importQuery(project, found.id).queryKey, next),
    onSettled: () => settle(),
    // One after another, so that an older answer never comes over a newer one.
    scope: { id: `import ${found.id}` },
  });
  // Saved only when nothing is on its way and nothing typed waits to be sent.
  const underWay = useRef(0);
  const typed = useRef<Changes | null>(null);
  const settle = () => {
    underWay.current -= 1;
    if (!underWay.current && !typed.current) onSaving(false);
  };
  const set = (body: Changes) => {
    underWay.current += 1;
    onSaving(true);
    save.mutate(body);
  };
  const send = useDebouncedCallback(() => {
    const body = typed.current;
    typed.current = null;
    if (body) set(body);
  }, WAIT_MS);
  const setSoon = (body: Changes) => {
    typed.current = { ...typed.current, ...body };
    onSaving(true);
    send();
  };
  const { options, detected } = found;
  const kind = options.kind ?? found.effective?.kind ?? detected?.kind ?? null;
  const fields = found.kinds.find((one) => one.kind === kind)?.fields ?? [];
  // What is not named is found by its name; null leaves a field out though it could be found.
  const recognised = found.effective ?? (detected?.kind === kind ? detected : null);
  const mapped: Record<string, string | null> = { ...recognised?.mapping, ...options.mapping };
  const preferences = kind === "preferences";
  const graded = Object.keys(mapped).some((field) => /^attributes(\.|$)/.test(field) && mapped[field]);
  const required = (field: (typeof fields)[number]) => field.required && !(field.name === "reward" && graded);
  const wanted = (field: (typeof fields)[number]) => field.required || !!mapped[field.name];
  const rest = fields.filter((field) => !wanted(field));
  const [opened, more] = useDisclosure();
  const column = (field: (typeof fields)[number]) => (
    <Select
      key={field.name}
      label={field.name}
      description={field.about}
      required={required(field)}
      clearable={!required(field)}
      searchable
      placeholder="no column"
      data={found.columns.map(({ name: one, types }) => ({
        value: one,
        label: `${one} · ${types.join(" or ")}`,
      }))}
      value={mapped[field.name] ?? null}
      onChange={(chosen) => set({ mapping: { ...options.mapping, [field.name]: chosen } })}
    />
  );
  return (
    <Card withBorder>
      <Stack gap="sm">
        <TextInput
          label="Name of the dataset"
          required
          value={name}
          onChange={(event) => {
            setName(event.currentTarget.value);
            onSaving(true);
            setSoon({ name: event.currentTarget.value });
          }}
        />
        <Select
          label="Kind"
          description={
            detected && kind === detected.kind
              ? "detected from the columns"
              : "the columns alone do not determine it"
          }
          data={found.kinds.map((one) => one.kind)}
          value={kind}
          allowDeselect={false}
          onChange={(value) => value && set({ kind: value as Changes["kind"], mapping: {} })}
        />
        {found.effective?.layouts?.map((layout) => (
          <Alert key={layout} variant="light" color="teal" title={`Recognised: ${layout}`}>
            <Text size="sm">{readable?.layouts.find((one) => one.name === layout)?.about}</Text>
          </Alert>
        ))}
        {found.effective && found.effective.form !== "columns" && (
          <Text size="sm" c="dimmed">
            {found.effective.form === "transcripts"
              ? "The columns hold whole transcripts; the turns that both sides share become the prompt."
              : "The file holds dialogues; each answer becomes a row with the turns before it as its prompt."}
          </Text>
        )}
        <Title order={2} size="h6">
          Columns
        </Title>
        {fields.filter(wanted).map(column)}
        {rest.length > 0 && (
          <>
            <Button variant="subtle" color="gray" size="compact-sm" w="max-content" onClick={more.toggle}>
              {opened ? "Fewer columns" : `${rest.length} optional columns`}
            </Button>
            {opened && rest.map(column)}
          </>
        )}
        {fields.some((field) => field.name === "attributes") && (
          <Attributes
            columns={found.columns}
            mapped={mapped}
            onMap={(field, chosen) => {
              const others = Object.entries(options.mapping).filter(([name]) => name !== field);
              set({ mapping: Object.fromEntries(chosen === null ? others : [...others, [field, chosen]]) });
            }}
          />
        )}
        <UnusedColumns
          columns={found.effective?.unused ?? []}
          onUse={(column) =>
            set({
              kind: column.kind,
              mapping: {
                ...(column.kind === kind ? options.mapping : found.effective?.mapping),
                [column.field!]: column.name,
              },
            })
          }
        />
        {found.problem && found.state === "draft" && (
          <Alert color="orange" title={found.problem.title}>
            <Stack gap={4}>
              <Text size="sm" style={{ overflowWrap: "anywhere" }}>
                {found.problem.detail}
              </Text>
              {found.problem.hint && <Text size="sm">{found.problem.hint}</Text>}
            </Stack>
          </Alert>
        )}
        <Radio.Group
          label="Rows that are not valid"
          value={options.bad_rows}
          onChange={(value) => set({ bad_rows: value as "refuse" | "skip" })}
        >
          <Stack gap={6} mt={4}>
            <Radio value="refuse" label="Refuse the file" />
            <Radio value="skip" label="Skip them and list them" />
          </Stack>
        </Radio.Group>
        <Switch
          label="Clean: drop empty rounds, identical sides and duplicates, with a count for each"
          checked={options.clean}
          onChange={(event) => set({ clean: event.currentTarget.checked })}
        />
        {preferences && mapped.margin && (
          <NumberInput
            label="Minimum margin"
            description="Pairs with a smaller one are dropped"
            defaultValue={options.min_margin ?? undefined}
            onChange={(value) => setSoon({ min_margin: typeof value === "number" ? value : null })}
          />
        )}
        {save.error && <Failure error={save.error} />}
      </Stack>
    </Card>
  );
}

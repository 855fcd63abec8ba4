import {
  Accordion,
  Button,
  Card,
  Group,
  NumberInput,
  SimpleGrid,
  Stack,
  Text,
  TextInput,
  Title,
} from "@mantine/core";
import { useMutation, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { api, data, type Schemas } from "../../api/client";
import { schemaQuery } from "../../api/data";
import { runQuery, type RunDetail } from "../../api/runs";
import { Empty, Failure, LoadedPage, Loading } from "../../shared/Feedback";
import { Link } from "../../shared/links";
import { Page } from "../../shared/Page";
import { asked, changed, fieldsOf, show, textsOf } from "../../shared/schemaForm";
import { ConfigFields } from "./ConfigFields";
import { Estimate } from "./Estimate";
import { FilterPreview } from "./FilterPreview";
import { RwrPreview } from "./RwrPreview";
import { ThingSelect } from "./ThingSelect";

const route = getRouteApi("/p/$project/launch/$kind");
const OTHER_KINDS = ["base", "generate", "mix", "score", "evaluate", "benchmark"];
/** What is set most often stands first; the rest is folded away. */
const MAIN = [
  "source",
  "lr",
  "batch",
  "epochs",
  "max_steps",
  "threshold",
  "beta",
  "max_weight",
  "self_normalised",
  "score_scale",
  "score_step",
  "centre",
  "use_margin",
  "parts",
  "size",
  "decoding",
  "n",
  "entrants",
  "prompts",
  "max_length",
  "engine",
  "strategy",
  "lora",
];

export function LaunchRunPage() {
  const { project, kind } = route.useParams();
  const { from, data: ofData, model: ofModel } = route.useSearch();
  const schemas = useQuery(schemaQuery(project, OTHER_KINDS.includes(kind) ? kind : "train"));
  const origin = useQuery({ ...runQuery(project, from ?? ""), enabled: !!from });
  // What the cloned run read from others of its pipeline is by now a model or dataset with a name.
  const upstream = (origin.data?.inputs ?? []).filter((input) => input.type === "run");
  const makers = useQueries({ queries: upstream.map((input) => runQuery(project, input.id)) });
  const title = `Launch ${kind}`;
  const kinds = (
    <Link to="/p/$project/launch" params={{ project }} search={{}}>
      All that can be launched
    </Link>
  );
  return (
    <LoadedPage title={title} query={schemas} others={kinds}>
      {(all) => {
        const schema = all.find((one) => one.method === kind || one.kind === kind);
        if (!schema)
          return (
            <Page title="Launch">
              <Empty title={`There is no run of the kind ${kind}`}>{kinds}</Empty>
            </Page>
          );
        if (from && (!origin.data || makers.some((maker) => maker.isPending)))
          return (
            <LoadedPage title={title} query={origin}>
              {() => (
                <Page title={title}>
                  <Loading />
                </Page>
              )}
            </LoadedPage>
          );
        const made = upstream.map((input, at): [string, string] => [
          input.name,
          makers[at]?.data?.outputs[0]?.label ?? "",
        ]);
        const named = (origin.data?.inputs ?? [])
          .filter((input) => input.type !== "run")
          .map((input): [string, string] => [input.name, input.label]);
        return (
          <RunForm
            key={`${kind} ${from} ${ofData} ${ofModel}`}
            project={project}
            schema={schema}
            origin={origin.data}
            given={{
              ...(ofData ? { [firstSlot(schema, "dataset")]: ofData } : {}),
              ...(ofModel ? { [firstSlot(schema, "model")]: ofModel } : {}),
              ...Object.fromEntries([...named, ...made]),
            }}
          />
        );
      }}
    </LoadedPage>
  );
}

/** Where a dataset or model goes that a link brought along. */
function firstSlot(schema: Schemas["RunKindOut"], type: "dataset" | "model"): string {
  const slot = schema.inputs.find((one) => one.type === type);
  return slot?.many ? `${slot.name}.0` : (slot?.name ?? type);
}

function RunForm({
  project,
  schema,
  origin,
  given: before,
}: {
  project: string;
  schema: Schemas["RunKindOut"];
  origin?: RunDetail;
  given: Record<string, string>;
}) {
  const fields = useMemo(() => fieldsOf(schema.config_schema), [schema]);
  const [texts, setTexts] = useState<Record<string, string>>(() => textsOf(fields, origin?.config ?? {}));
  const [inputs, setInputs] = useState(before);
  const [name, setName] = useState("");
  const [pool, setPool] = useState(origin?.pool ?? "default");
  const [priority, setPriority] = useState(0);
  const client = useQueryClient();
  const navigate = useNavigate();

  const { values, errors } = changed(fields, texts);
  const config = { run: schema.kind, ...(schema.method ? { method: schema.method } : {}), ...values };
  const given = Object.fromEntries(Object.entries(inputs).filter(([, value]) => value));
  const missing = schema.inputs.filter(
    (slot) => slot.required && !given[slot.many ? `${slot.name}.0` : slot.name],
  );
  const ready = !missing.length && !Object.keys(errors).length;
  const start = useMutation({
    mutationFn: () =>
      data(
        api.POST("/api/v1/projects/{project}/runs", {
          params: { path: { project } },
          body: { name: name || null, config, inputs: given, pool, priority, reuse: true },
        }),
      ),
    onSuccess: async (run) => {
      await client.invalidateQueries({ queryKey: [project] });
      await navigate({ to: "/p/$project/runs/$run", params: { project, run: run.id } });
    },
  });
  const change = (field: string, text: string) => setTexts((before) => ({ ...before, [field]: text }));
  const shown = asked(fields, texts);
  const main = shown.filter((field) => MAIN.includes(field.group ?? field.name) || field.required);
  const rest = shown.filter((field) => !main.includes(field));
  const number = (field: string) =>
    Number(texts[field] ?? show(fields.find((one) => one.name === field)?.initial));

  return (
    <Page
      title={origin ? `Clone ${origin.name}` : `Launch ${schema.method ?? schema.kind}`}
      about={schema.description}
    >
      <Card withBorder>
        <Title order={2} size="h5" mb="sm">
          Inputs
        </Title>
        <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }}>
          {schema.inputs.flatMap((slot) => {
            const used = Object.keys(given).filter((key) => key.startsWith(`${slot.name}.`)).length;
            const keys = slot.many
              ? Array.from({ length: used + 1 }, (_, at) => `${slot.name}.${at}`)
              : [slot.name];
            return keys.map((key, at) => (
              <ThingSelect
                key={key}
                project={project}
                type={slot.type}
                allowed={slot.allowed}
                label={key}
                required={slot.required && at === 0}
                value={inputs[key] ?? null}
                onChange={(value) => setInputs((before) => ({ ...before, [key]: value ?? "" }))}
              />
            ));
          })}
        </SimpleGrid>
      </Card>
      <Card withBorder>
        <Title order={2} size="h5" mb="sm">
          Settings
        </Title>
        <ConfigFields fields={main} texts={texts} errors={errors} onChange={change} />
        <Accordion variant="contained" mt="lg">
          <Accordion.Item value="rest">
            <Accordion.Control>All other settings ({rest.length})</Accordion.Control>
            <Accordion.Panel>
              <ConfigFields fields={rest} texts={texts} errors={errors} onChange={change} />
            </Accordion.Panel>
          </Accordion.Item>
        </Accordion>
      </Card>
      {schema.method === "mle_filter" && given.data && (
        <FilterPreview
          project={project}
          dataset={given.data}
          threshold={number("threshold")}
          onThreshold={(value) => change("threshold", show(value))}
        />
      )}
      {schema.method === "rwr" && given.data && (
        <RwrPreview
          project={project}
          dataset={given.data}
          beta={number("beta")}
          maxWeight={texts.max_weight === "" ? null : number("max_weight")}
        />
      )}
      <Card withBorder>
        <SimpleGrid cols={{ base: 1, sm: 3 }}>
          <TextInput
            label="Name"
            description="Made up when empty"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <TextInput
            label="Pool"
            description="Which workers take it"
            value={pool}
            onChange={(event) => setPool(event.currentTarget.value)}
          />
          <NumberInput
            label="Priority"
            description="-100 to 100; higher goes first"
            min={-100}
            max={100}
            value={priority}
            onChange={(value) => setPriority(Number(value) || 0)}
          />
        </SimpleGrid>
      </Card>
      {ready && <Estimate project={project} config={config} inputs={given} />}
      {start.error && <Failure error={start.error} />}
      <Group justify="flex-end">
        <Stack gap={0} align="flex-end">
          {missing.length > 0 && (
            <Text size="sm" c="dimmed">
              Choose {missing.map((slot) => slot.name).join(", ")} first.
            </Text>
          )}
          {Object.keys(errors).length > 0 && (
            <Text size="sm" c="dimmed">
              Set {Object.keys(errors).join(", ")} first.
            </Text>
          )}
        </Stack>
        <Button size="md" disabled={!ready} loading={start.isPending} onClick={() => start.mutate()}>
          Launch
        </Button>
      </Group>
    </Page>
  );
}

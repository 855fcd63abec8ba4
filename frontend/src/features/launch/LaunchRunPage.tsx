import {
  Accordion,
  Badge,
  Button,
  Card,
  Group,
  NumberInput,
  SimpleGrid,
  Text,
  TextInput,
  Title,
} from "@mantine/core";
import { useMutation, useQueries, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { everything, Problem, type Schemas } from "../../api/client";
import { schemaQuery } from "../../api/runs/recipes";
import { launchRun, type RunDetail, runQuery } from "../../api/runs/runs";
import { runKindsQuery } from "../../api/runs/runKinds";
import { ActionBar } from "../../shared/ActionBar";
import { Empty, Failure, LoadedPage, Loading } from "../../shared/Feedback";
import { Link } from "../../shared/links";
import { Page } from "../../shared/Page";
import { asked, changed, type Field, faultsIn, fieldsOf, textsOf } from "../../shared/forms/schemaForm";
import { ConfigFields } from "./ConfigFields";
import { ConfigPreview } from "./ConfigPreview";
import { Estimate, useEstimate } from "./Estimate";
import { ThingSelect } from "./ThingSelect";

const route = getRouteApi("/p/$project/launch/$kind");

export function LaunchRunPage() {
  const { project, kind } = route.useParams();
  const { from, data: ofData, model: ofModel } = route.useSearch();
  const kindsQuery = useQuery(runKindsQuery(project));
  const card = kindsQuery.data?.find((one) => one.key === kind);
  const schemas = useQuery({ ...schemaQuery(project, card?.kind ?? ""), enabled: !!card });
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
  if (kindsQuery.data && !card)
    return (
      <Page title="Launch">
        <Empty title={`There is no run of the kind ${kind}`}>{kinds}</Empty>
      </Page>
    );
  return (
    <LoadedPage title={title} query={kindsQuery.error ? kindsQuery : schemas} others={kinds}>
      {(all) => {
        const schema = (all as Schemas["RunKindOut"][]).find((one) => one.key === kind)!;
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
              ...(asksEndpoints(schema) && origin.data?.config[ENDPOINT]
                ? { [MODEL]: String(origin.data.config[ENDPOINT]) }
                : {}),
            }}
          />
        );
      }}
    </LoadedPage>
  );
}

/** Whether all places are of one of the fields, or inside of it. */
function allAt(fields: string[], places: string[]): boolean {
  const inField = (place: string) => fields.some((name) => place === name || place.startsWith(`${name}.`));
  return places.length > 0 && places.every(inField);
}

const MODEL = "model";
const ENDPOINT = "endpoint";

/** Whether the run takes an endpoint in the place of its model. */
function asksEndpoints(schema: Schemas["RunKindOut"]): boolean {
  return ENDPOINT in ((schema.config_schema.properties ?? {}) as object);
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
  // An endpoint is chosen where the model is, and the server takes it from there.
  const fields = useMemo(
    () => fieldsOf(schema.config_schema).filter(({ name }) => name !== ENDPOINT || !asksEndpoints(schema)),
    [schema],
  );
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
  const wrong = Object.keys(errors);
  const ready = !missing.length && !wrong.length;
  const estimate = useEstimate(project, config, given, ready);
  const refused =
    ready && estimate.error instanceof Problem && estimate.error.status === 422 ? estimate.error : null;
  const faults = Object.fromEntries(
    (refused?.places ?? []).map(({ location, message }) => [location.replace(/^config\./, ""), message]),
  );
  const start = useMutation({
    mutationFn: () =>
      launchRun(project, { name: name || null, config, inputs: given, pool, priority, reuse: true }),
    onSuccess: async (run) => {
      await client.invalidateQueries({ queryKey: everything(project) });
      await navigate({ to: "/p/$project/runs/$run", params: { project, run: run.id } });
    },
  });
  const change = (field: string, text: string) => setTexts((before) => ({ ...before, [field]: text }));
  const shown = asked(fields, texts);
  // What the kind shows first, in its order; the rest is folded away.
  const place = (field: Field) => schema.form.indexOf(field.group ?? field.name);
  const main = shown
    .filter((field) => place(field) >= 0 || field.required)
    .sort((one, other) => place(one) - place(other));
  const rest = shown.filter((field) => !main.includes(field));
  const isRefused = ({ name }: Field) => name in faults || Object.keys(faultsIn(faults, name)).length > 0;
  const toCorrect = shown.filter(isRefused).map((field) => field.name);
  const folded = rest.filter((field) => field.name in errors || isRefused(field));
  // What is shown at its field is not repeated as a place in the config.
  const elsewhere = refused && !allAt(toCorrect, Object.keys(faults)) ? refused : null;

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
                endpoints={slot.name === MODEL && asksEndpoints(schema)}
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
        <ConfigFields fields={main} texts={texts} errors={errors} faults={faults} onChange={change} />
        <Accordion variant="contained" mt="lg">
          <Accordion.Item value="rest">
            <Accordion.Control>
              <Group gap="xs">
                All other settings ({rest.length})
                {folded.length > 0 && <Badge color="red">{folded.length} to correct</Badge>}
              </Group>
            </Accordion.Control>
            <Accordion.Panel>
              <ConfigFields fields={rest} texts={texts} errors={errors} faults={faults} onChange={change} />
            </Accordion.Panel>
          </Accordion.Item>
        </Accordion>
      </Card>
      {schema.training?.preview && given.data && (
        <ConfigPreview
          project={project}
          dataset={given.data}
          preview={schema.training.preview}
          fields={fields}
          texts={texts}
          onChange={change}
        />
      )}
      <Card withBorder>
        <SimpleGrid cols={{ base: 1, sm: 3 }}>
          <TextInput
            label="Name"
            description="Generated when empty"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <TextInput
            label="Pool"
            description="Pool whose workers take it"
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
      {elsewhere && <Failure error={elsewhere} />}
      <ActionBar
        error={refused ? null : start.error}
        says={
          <>
            {missing.length > 0 && (
              <Text size="sm" c="dimmed">
                Choose {missing.map((slot) => slot.name).join(", ")} first.
              </Text>
            )}
            {wrong.length > 0 && (
              <Text size="sm" c="dimmed">
                Set {wrong.join(", ")} first.
              </Text>
            )}
            {refused && (
              <Text size="sm" c="red">
                {elsewhere ? refused.title : `Correct ${toCorrect.join(", ")} first.`}
              </Text>
            )}
            {ready && !refused && estimate.data && <Estimate found={estimate.data} />}
          </>
        }
      >
        <Button
          size="md"
          disabled={!ready || !!refused}
          loading={start.isPending}
          onClick={() => start.mutate()}
        >
          Launch
        </Button>
      </ActionBar>
    </Page>
  );
}

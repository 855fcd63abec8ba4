import { Button, Card, NumberInput, SimpleGrid, Text, TextInput, Title } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { everything, Problem, type Schemas } from "../../api/client";
import { launchRun, type RunDetail } from "../../api/runs/runs";
import { ActionBar } from "../../shared/ActionBar";
import { Failure } from "../../shared/Feedback";
import { listed } from "../../shared/format/format";
import { asked, changed, textsOf } from "../../shared/forms/configValues";
import { faultsIn } from "../../shared/forms/faults";
import { type Field, fieldsOf } from "../../shared/forms/schemaFields";
import { show } from "../../shared/forms/valueText";
import { Page } from "../../shared/Page";
import { WithCode } from "../../shared/text/WithCode";
import { ConfigPreview } from "./previews/ConfigPreview";
import { Estimate, useEstimate } from "./Estimate";
import { RowCheck } from "./RowCheck";
import { SettingFields } from "./SettingFields";
import { Inputs } from "./Inputs";
import { asksEndpoints, ENDPOINT, keysOf, missingOf, MODEL } from "./inputSlots";

/** What a run of one kind reads and how it is set, with what it costs before it starts. */
export function RunForm({
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
  const missing = missingOf(schema, given, values);
  const wrong = Object.keys(errors);
  const unset = wrong.filter((field) => !texts[field]);
  const mistyped = wrong.filter((field) => texts[field]);
  const ready = !missing.length && !wrong.length;
  const { estimate, asked: settled } = useEstimate(project, config, given, ready);
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
  // What the kind shows first, in its order; the rest is folded by topic.
  const place = (field: Field) => schema.form.indexOf(field.group ?? field.name);
  const main = shown
    .filter((field) => place(field) >= 0 || field.required)
    .sort((one, other) => place(one) - place(other));
  const rest = shown.filter((field) => !main.includes(field));
  const isRefused = ({ name }: Field) => name in faults || Object.keys(faultsIn(faults, name)).length > 0;
  const inputFaults = Object.fromEntries(
    schema.inputs
      .flatMap((slot) => keysOf(slot, inputs))
      .flatMap((key) => (faults[`inputs.${key}`] ? [[key, faults[`inputs.${key}`]!]] : [])),
  );
  const toCorrect = [...Object.keys(inputFaults), ...shown.filter(isRefused).map((field) => field.name)];
  const isChanged = ({ name, initial }: Field) => (texts[name] ?? show(initial)) !== show(initial);
  // What is shown at its field is not repeated as a place in the config.
  const places = Object.keys(faults).map((place) => place.replace(/^inputs\./, ""));
  const elsewhere = refused && !allAt(toCorrect, places) ? refused : null;

  return (
    <Page
      title={origin ? `Clone ${origin.name}` : `Launch ${schema.method ?? schema.kind}`}
      about={
        <>
          {/* Methods are described by their equations, other kinds in words. */}
          {(schema.training || !schema.description) && `${schema.about} `}
          <WithCode text={schema.description} />
        </>
      }
    >
      <Inputs
        project={project}
        schema={schema}
        given={inputs}
        faults={inputFaults}
        onChange={(key, value) => setInputs((before) => ({ ...before, [key]: value }))}
      />
      <Card withBorder>
        <Title order={2} size="h5" mb="sm">
          Settings
        </Title>
        <SettingFields
          main={main}
          rest={rest}
          isChanged={isChanged}
          isWrong={(field) => field.name in errors || isRefused(field)}
          texts={texts}
          errors={errors}
          faults={faults}
          onChange={change}
        />
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
            description="Generated if empty"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <TextInput
            label="Pool"
            description="Worker pool that runs it"
            value={pool}
            onChange={(event) => setPool(event.currentTarget.value)}
          />
          <NumberInput
            label="Priority"
            description="-100 to 100; higher runs first"
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
                Choose {listed(missing.map(({ name }) => (name === MODEL ? "a model" : name)))} first.
              </Text>
            )}
            {unset.length > 0 && (
              <Text size="sm" c="dimmed">
                Set {listed(unset)} first.
              </Text>
            )}
            {mistyped.length > 0 && (
              <Text size="sm" c="dimmed">
                Correct {listed(mistyped)} first.
              </Text>
            )}
            {refused && (
              <Text size="sm" c="red">
                {elsewhere ? refused.title : `Correct ${listed(toCorrect)} first.`}
              </Text>
            )}
            {ready && !refused && estimate.data && <Estimate found={estimate.data} />}
            {ready && !refused && estimate.isSuccess && schema.method && (
              <RowCheck project={project} work={settled} pool={pool} />
            )}
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

/** Whether all places are of one of the fields, or inside of it. */
function allAt(fields: string[], places: string[]): boolean {
  const inField = (place: string) => fields.some((name) => place === name || place.startsWith(`${name}.`));
  return places.length > 0 && places.every(inField);
}

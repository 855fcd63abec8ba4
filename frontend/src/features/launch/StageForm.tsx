import { SimpleGrid, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { Schemas } from "../../api/client";
import { schemaQuery } from "../../api/runs/recipes";
import { Loaded } from "../../shared/Feedback";
import { asked, textsOf } from "../../shared/forms/configValues";
import { type Field, fieldsOf } from "../../shared/forms/schemaFields";
import { useProject } from "../../shared/links";
import { type Fault, faultOf } from "./recipeFaults";
import { SettingFields } from "./SettingFields";
import { setText, shownFirst, shownTexts } from "./stageTexts";

type Stage = Schemas["PlannedStageOut"];

interface Properties {
  stage: Stage;
  faults: Fault[];
  /** What was typed, by field. */
  typed: Record<string, string>;
  onChange: (field: string, text: string) => void;
}

/** The settings of a recipe's stage, in the form that a single run of its kind has. */
export function StageForm(properties: Properties) {
  const { stage } = properties;
  const schemas = useQuery(schemaQuery(useProject(), stage.kind));
  return (
    <Loaded query={schemas} rows={3}>
      {(kinds) => {
        const kind = (kinds as Schemas["RunKindOut"][]).find(
          ({ key }) => key === (stage.method ?? stage.kind),
        );
        return kind ? <Fields kind={kind} {...properties} /> : null;
      }}
    </Loaded>
  );
}

function Fields({ kind, stage, faults, typed, onChange }: Properties & { kind: Schemas["RunKindOut"] }) {
  const fields = useMemo(() => fieldsOf(kind.config_schema), [kind]);
  // An emptied field names the value that it then has.
  const given = textsOf(fields, stage.config);
  const asGiven = (field: Field) => ({ ...field, initial: given[field.name] ?? field.initial });
  const names = Object.keys(typed).filter((name) => typed[name] !== "");
  const texts = shownTexts(fields, stage.config, typed);
  // Chosen once: a field keeps its place while someone types in it.
  const [first] = useState(() => shownFirst(fields, texts, kind.form, names));
  const shown = asked(fields, texts);
  const main = first.flatMap((name) => shown.filter((field) => field.name === name));
  const rest = shown.filter((field) => !main.includes(field));
  const wrong = names.filter((name) => faultOf(faults, `${stage.name}.${name}`));
  const errors = Object.fromEntries(
    wrong.map((name) => [name, faultOf(faults, `${stage.name}.${name}`)!.message]),
  );
  const change = (name: string, text: string) => {
    const field = fields.find((one) => one.name === name);
    onChange(name, field ? setText(field, text) : text);
  };
  const unknown = names.filter((name) => !fields.some((field) => field.name === name));
  const section = { texts, errors, onChange: change };
  return (
    <>
      <SettingFields
        main={main.map(asGiven)}
        rest={rest.map(asGiven)}
        isChanged={({ name }) => names.includes(name)}
        isWrong={({ name }) => wrong.includes(name)}
        {...section}
      />
      {unknown.length > 0 && (
        <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} mt="md">
          {unknown.map((name) => (
            <TextInput
              key={name}
              label={name}
              value={typed[name]}
              error={errors[name]}
              onChange={(event) => onChange(name, event.currentTarget.value)}
            />
          ))}
        </SimpleGrid>
      )}
    </>
  );
}

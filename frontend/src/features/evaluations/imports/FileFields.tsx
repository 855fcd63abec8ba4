import { Checkbox, Select, SimpleGrid, TextInput } from "@mantine/core";
import type { Evaluation } from "../../../api/evaluation/evaluations";
import type { FileField } from "./fields";

interface Properties {
  fields: FileField[];
  evaluation: Evaluation;
  values: Record<string, string>;
  onChange: (name: string, value: string) => void;
}

/** The fields of one sort of file, switches below the others. */
export function FileFields({ fields, evaluation, values, onChange }: Properties) {
  return (
    <>
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        {fields
          .filter((one) => one.type !== "switch")
          .map(({ name, type, ...shown }) =>
            type === "entrant" ? (
              <Select
                key={name}
                {...shown}
                data={evaluation.entrants.map((one) => one.name)}
                clearable
                value={values[name] || null}
                onChange={(value) => onChange(name, value ?? "")}
                inputWrapperOrder={ORDER}
              />
            ) : (
              <TextInput
                key={name}
                {...shown}
                value={values[name] ?? ""}
                onChange={(event) => onChange(name, event.currentTarget.value)}
                inputWrapperOrder={ORDER}
              />
            ),
          )}
      </SimpleGrid>
      {fields
        .filter((one) => one.type === "switch")
        .map(({ name, label, description }) => (
          <Checkbox
            key={name}
            label={label}
            description={description}
            checked={values[name] === "true"}
            onChange={(event) => onChange(name, String(event.currentTarget.checked))}
          />
        ))}
    </>
  );
}

// So the fields of a row are level, whether they have a description or not.
const ORDER: ("label" | "input" | "description" | "error")[] = ["label", "input", "description", "error"];

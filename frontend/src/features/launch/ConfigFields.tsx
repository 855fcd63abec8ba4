import { Select, SimpleGrid, Stack, Switch, Text, TextInput } from "@mantine/core";
import { faultsIn } from "../../shared/forms/faults";
import type { Field } from "../../shared/forms/schemaFields";
import { show } from "../../shared/forms/valueText";
import { JudgeSelect } from "./JudgeSelect";
import { type FieldsProperties, ListField } from "./ListField";
import { WithCode } from "../../shared/text/WithCode";

// So the fields of a row are level, however long their descriptions are.
const ORDER: ("label" | "input" | "description" | "error")[] = ["label", "input", "description", "error"];

export function ConfigFields({ fields, texts, errors, faults = {}, onChange }: FieldsProperties) {
  return (
    <SimpleGrid cols={{ base: 1, sm: 2, xl: 3 }} verticalSpacing="md">
      {fields.map((field) => (
        <OneField
          key={field.name}
          field={field}
          text={texts[field.name] ?? show(field.initial)}
          // What is still empty is not a mistake yet; the foot of the page names it.
          error={(texts[field.name] === undefined ? undefined : errors[field.name]) || faults[field.name]}
          inside={faultsIn(faults, field.name)}
          onChange={(text) => onChange(field.name, text)}
        />
      ))}
    </SimpleGrid>
  );
}

function OneField({
  field,
  text,
  error,
  inside,
  onChange,
}: {
  field: Field;
  text: string;
  error?: string;
  inside: Record<string, string>;
  onChange: (text: string) => void;
}) {
  const about = (
    <Stack gap={0} component="span">
      {field.description && (
        <span>
          <WithCode text={field.description} />
        </span>
      )}
      {field.source && (
        <Text size="xs" component="span" fs="italic">
          {field.source}
        </Text>
      )}
    </Stack>
  );
  const common = {
    label: field.name,
    description: field.description || field.source ? about : undefined,
    error,
    required: field.required,
  };
  if (field.type === "list") {
    return (
      <ListField
        Fields={ConfigFields}
        field={field}
        about={common.description}
        text={text}
        error={error}
        faults={inside}
        onChange={onChange}
      />
    );
  }
  if (field.type === "choice") {
    return (
      <Select
        {...common}
        inputWrapperOrder={ORDER}
        data={field.choices}
        value={text || null}
        clearable={field.nullable}
        onChange={(value) => onChange(value ?? "")}
        placeholder={field.nullable ? "default" : undefined}
        allowDeselect={field.nullable}
      />
    );
  }
  if (field.type === "boolean") {
    return (
      <Switch
        {...common}
        mt="lg"
        // The fields that it asks for begin on a line of their own.
        style={field.optionalGroup ? { gridColumn: "1 / -1" } : undefined}
        checked={text === "true"}
        onChange={(event) => onChange(String(event.currentTarget.checked))}
      />
    );
  }
  if (field.names === "judge")
    return <JudgeSelect {...common} inputWrapperOrder={ORDER} value={text} onChange={onChange} />;
  return (
    <TextInput
      {...common}
      inputWrapperOrder={ORDER}
      value={text}
      inputMode={field.type === "number" || field.type === "integer" ? "decimal" : undefined}
      placeholder={
        field.nullable ? "none" : show(field.initial) || (field.type === "json" ? "JSON" : undefined)
      }
      styles={
        field.type === "json" ? { input: { fontFamily: "var(--mantine-font-family-monospace)" } } : undefined
      }
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}

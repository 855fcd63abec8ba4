import type { Schemas } from "../../../api/client";
import type { Field } from "../../../shared/forms/schemaFields";
import { show } from "../../../shared/forms/valueText";
import { SelectionPreview } from "./SelectionPreview";
import { WeightsPreview } from "./WeightsPreview";

interface Properties {
  project: string;
  dataset: string;
  preview: Schemas["PreviewOut"];
  fields: Field[];
  texts: Record<string, string>;
  onChange: (field: string, text: string) => void;
}

/** What the method would make of the data with the settings as they are typed. */
export function ConfigPreview({ project, dataset, preview, fields, texts, onChange }: Properties) {
  /** The text of the config's field that the preview knows by another name. */
  const text = (name: string) => {
    const field = preview.fields[name];
    return field ? (texts[field] ?? show(fields.find((one) => one.name === field)?.initial)) : undefined;
  };
  if (preview.kind === "selection")
    return (
      <SelectionPreview
        project={project}
        dataset={dataset}
        threshold={Number(text("threshold"))}
        onThreshold={(value) => onChange(preview.fields.threshold!, show(value))}
      />
    );
  const most = text("max_weight");
  return (
    <WeightsPreview
      project={project}
      dataset={dataset}
      beta={Number(text("beta"))}
      maxWeight={most ? Number(most) : null}
    />
  );
}

import { Autocomplete, Select, type ComboboxItem, type OptionsFilter } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { type DatasetFilters, datasetsQuery } from "../../api/datasets/datasets";
import { endpointsQuery } from "../../api/models/endpoints";
import { type ModelFilters, modelsQuery } from "../../api/models/models";
import { runKindsQuery } from "../../api/runs/runKinds";
import { count } from "../../shared/format/format";
import { AFTER_NAME, useByName } from "../../shared/forms/useByName";
import { Link } from "../../shared/links";

interface Properties {
  project: string;
  type: "dataset" | "model";
  /** Kinds of datasets or roles of models that fit; all when empty. */
  allowed: string[];
  label: string;
  value: string | null;
  onChange: (name: string | null) => void;
  required: boolean;
  /** Further answers that name nothing in the project, such as random:tiny-llama. */
  extra?: string[];
  /** Takes also an endpoint of the project. */
  endpoints?: boolean;
  /** No adapters over their bases. */
  whole?: boolean;
  /** Takes also what is not on the list: a folder, or the name of a model on the hub. */
  free?: boolean;
  error?: string;
}

/** A dataset or model of the project by name. */
export function ThingSelect({
  project,
  type,
  allowed,
  label,
  value,
  onChange,
  required,
  extra = [],
  endpoints = false,
  whole = false,
  free = false,
  error,
}: Properties) {
  // Kinds or roles that fit are asked for as such: the newest of all may have none of them.
  const datasets = useByName(
    (name) => datasetsQuery(project, { name, kind: allowed as DatasetFilters["kind"] }),
    { chosen: [value], enabled: type === "dataset" },
  );
  const models = useByName((name) => modelsQuery(project, { name, role: allowed as ModelFilters["role"] }), {
    chosen: [value],
    enabled: type === "model",
  });
  const served = useQuery({ ...endpointsQuery(project), enabled: endpoints });
  const fits = (kind: string) => !allowed.length || allowed.includes(kind);
  const options =
    type === "dataset"
      ? (datasets.data ?? []).map((d) => ({
          value: d.name,
          label: `${d.name}${AFTER_NAME}${count(d.rows)} ${d.kind}`,
        }))
      : (models.data ?? [])
          .filter((m) => !(whole && m.info.lora))
          .map((m) => ({ value: m.name, label: `${m.name}${AFTER_NAME}${m.method ?? m.role}` }));
  if (endpoints)
    options.push(...(served.data ?? []).map((e) => ({ value: e.name, label: `${e.name} · endpoint` })));
  const { data: known, onSearchChange } = type === "dataset" ? datasets : models;
  // The run kind that makes such a model.
  const kinds = useQuery({ ...runKindsQuery(project), enabled: type === "model" });
  const makers = kinds.data?.filter((one) => one.makes_type === "model" && fits(one.makes ?? "")) ?? [];
  const maker = makers.find((one) => !one.training) ?? makers[0];
  // One of two lists that has come first shows nothing yet of what there is.
  const complete = !!known && (!endpoints || !!served.data);
  const only = complete && required && !extra.length && options.length === 1 ? options[0]!.value : null;
  const offered = useRef<string>(undefined);
  useEffect(() => {
    if (!only || value !== null) return;
    offered.current = only;
    onChange(only);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- offered once; a person may choose otherwise
  }, [only]);
  // A field that goes takes along what the page itself put in: no one could see it, or take it out.
  const latest = useRef({ value, onChange });
  useEffect(() => {
    latest.current = { value, onChange };
  });
  useEffect(
    () => () => {
      if (offered.current && latest.current.value === offered.current) latest.current.onChange(null);
    },
    [],
  );
  const common = { label, required, error };
  if (free)
    return (
      <Autocomplete
        {...common}
        description={`${[...allowed, "a folder"].join(", ")} or org/name on the hub`}
        data={[...extra, ...options.map((option) => option.value)]}
        filter={matching}
        renderOption={({ option }) =>
          options.find((one) => one.value === option.value)?.label ?? option.value
        }
        value={value ?? ""}
        onChange={(text) => {
          onSearchChange(text);
          onChange(text || null);
        }}
        clearable
        spellCheck={false}
        autoCapitalize="none"
        placeholder="A model, ./folder or org/name"
      />
    );
  return (
    <Select
      {...common}
      description={
        <>
          {allowed.length ? oneOf([...allowed, ...(endpoints ? ["endpoint"] : [])]) : type}
          {known && !options.length && !extra.length && (
            <>
              {": there is none yet. "}
              {type === "dataset" ? (
                <Link inherit underline="always" to="/p/$project/imports" params={{ project }}>
                  Import one
                </Link>
              ) : (
                maker && (
                  <Link
                    inherit
                    underline="always"
                    to="/p/$project/launch/$kind"
                    params={{ project, kind: maker.key }}
                    search={{}}
                  >
                    Make one
                  </Link>
                )
              )}
            </>
          )}
        </>
      }
      data={[...extra.map((one) => ({ value: one, label: one })), ...options]}
      value={value}
      onChange={onChange}
      clearable={!required}
      // The page may have chosen it a moment before: a second choice of the same must not undo it.
      allowDeselect={false}
      searchable
      onSearchChange={onSearchChange}
      nothingFoundMessage={`The project has no ${type} that fits`}
      placeholder={required ? `Choose a ${type}` : "none"}
    />
  );
}

/** What matches the text; everything once one of them is chosen, so that another can be. */
export const matching: OptionsFilter = ({ options, search }) => {
  const items = options as ComboboxItem[];
  const text = search.trim().toLowerCase();
  if (items.some((item) => item.value === search)) return items;
  return items.filter((item) => item.value.toLowerCase().includes(text));
};

/** `a, b or c`. */
function oneOf(names: string[]): string {
  return [names.slice(0, -1).join(", "), names.at(-1)].filter(Boolean).join(" or ");
}

import { Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { datasetsQuery, modelsQuery } from "../../api/data";
import { count } from "../../shared/format";
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
}: Properties) {
  const datasets = useQuery({ ...datasetsQuery(project), enabled: type === "dataset" });
  const models = useQuery({ ...modelsQuery(project), enabled: type === "model" });
  const fits = (kind: string) => !allowed.length || allowed.includes(kind);
  const options =
    type === "dataset"
      ? (datasets.data?.items ?? [])
          .filter((d) => fits(d.kind))
          .map((d) => ({ value: d.name, label: `${d.name} · ${count(d.rows)} ${d.kind}` }))
      : (models.data?.items ?? [])
          .filter((m) => fits(m.role))
          .map((m) => ({ value: m.name, label: `${m.name} · ${m.method ?? m.role}` }));
  const known = type === "dataset" ? datasets.data : models.data;
  // The run kind that makes such a model.
  const maker = allowed.length && !allowed.includes("base") ? "reward_model" : "base";
  const only = required && !extra.length && options.length === 1 ? options[0]!.value : null;
  useEffect(() => {
    if (only && value === null) onChange(only);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- offered once; a person may choose otherwise
  }, [only]);
  return (
    <Select
      label={label}
      description={
        <>
          {allowed.length ? allowed.join(" or ") : type}
          {known && !options.length && !extra.length && (
            <>
              {": there is none yet. "}
              {type === "dataset" ? (
                <Link inherit underline="always" to="/p/$project/imports" params={{ project }}>
                  Import one
                </Link>
              ) : (
                <Link
                  inherit
                  underline="always"
                  to="/p/$project/launch/$kind"
                  params={{ project, kind: maker }}
                  search={{}}
                >
                  Make one
                </Link>
              )}
            </>
          )}
        </>
      }
      data={[...extra.map((one) => ({ value: one, label: one })), ...options]}
      value={value}
      onChange={onChange}
      required={required}
      clearable={!required}
      allowDeselect={!required}
      searchable
      nothingFoundMessage={`No ${type} of this project fits`}
      placeholder={required ? `Choose a ${type}` : "none"}
    />
  );
}

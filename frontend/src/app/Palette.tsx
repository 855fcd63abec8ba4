import { Spotlight, type SpotlightActionData } from "@mantine/spotlight";
import { IconSearch } from "@tabler/icons-react";
import { useNavigate } from "@tanstack/react-router";
import { datasetsQuery } from "../api/datasets/datasets";
import { namedEvaluationsQuery } from "../api/evaluation/evaluations";
import { modelsQuery } from "../api/models/models";
import { pipelinesQuery } from "../api/runs/pipelines";
import { useByName } from "../shared/forms/useByName";

interface Place {
  to: string;
  label: string;
}

/** Pages that are below another one in the navigation. */
const FURTHER: readonly Place[] = [
  { to: "/p/$project/imports", label: "Import a dataset" },
  { to: "/p/$project/evaluations/new", label: "New evaluation" },
  { to: "/p/$project/settings/members", label: "Settings: members" },
  { to: "/p/$project/settings/tokens", label: "Settings: tokens" },
  { to: "/p/$project/settings/webhooks", label: "Settings: webhooks" },
  { to: "/p/$project/settings/audit", label: "Settings: audit log" },
];

/** Ctrl+K: every page, pipeline, evaluation, model and dataset by name. */
export function Palette({ project, places }: { project: string; places: readonly Place[] }) {
  const navigate = useNavigate();
  const pipelines = useByName((name) => pipelinesQuery(project, name));
  const evaluations = useByName((name) => namedEvaluationsQuery(project, name));
  const models = useByName((name) => modelsQuery(project, name ? { name } : undefined));
  const datasets = useByName((name) => datasetsQuery(project, name ? { name } : undefined));
  const go = (href: string) => () => void navigate({ href });
  const base = `/p/${project}`;
  const named = (group: string, folder: string, items: { name: string; detail: string }[] | undefined) => ({
    group,
    actions: (items ?? []).map(({ name, detail }): SpotlightActionData => ({
      id: `${folder}/${name}`,
      label: name,
      description: detail,
      onClick: go(`${base}/${folder}/${encodeURIComponent(name)}`),
    })),
  });
  return (
    <Spotlight
      shortcut={["mod + K", "/"]}
      nothingFound="Nothing has that name"
      highlightQuery
      scrollable
      maxHeight={420}
      limit={40}
      onQueryChange={(text) => {
        for (const one of [pipelines, evaluations, models, datasets]) one.onSearchChange(text);
      }}
      searchProps={{
        leftSection: <IconSearch size={18} />,
        placeholder: "Page, pipeline, evaluation, model or dataset",
        "aria-label": "Go to",
      }}
      actions={[
        {
          group: "Pages",
          actions: [...places, ...FURTHER].map(({ to, label }) => ({
            id: to,
            label,
            onClick: go(to.replace("$project", project)),
          })),
        },
        named(
          "Pipelines",
          "pipelines",
          pipelines.data?.map((p) => ({ name: p.name, detail: p.recipe })),
        ),
        named(
          "Evaluations",
          "evaluations",
          evaluations.data?.map((e) => ({ name: e.name, detail: e.entrants.join(", ") })),
        ),
        named(
          "Models",
          "models",
          models.data?.map((m) => ({ name: m.name, detail: m.method ?? m.role })),
        ),
        named(
          "Datasets",
          "datasets",
          datasets.data?.map((d) => ({ name: d.name, detail: d.kind })),
        ),
      ]}
    />
  );
}

import { Spotlight, type SpotlightActionData } from "@mantine/spotlight";
import { IconSearch } from "@tabler/icons-react";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { datasetsQuery } from "../api/datasets/datasets";
import { evaluationsQuery } from "../api/evaluation/evaluations";
import { modelsQuery } from "../api/models/models";
import { pipelinesQuery } from "../api/runs/pipelines";

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
  const pipelines = useQuery(pipelinesQuery(project));
  const evaluations = useInfiniteQuery(evaluationsQuery(project));
  const models = useQuery(modelsQuery(project));
  const datasets = useQuery(datasetsQuery(project));
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
          pipelines.data?.items.map((p) => ({ name: p.name, detail: p.recipe })),
        ),
        named(
          "Evaluations",
          "evaluations",
          evaluations.data?.pages
            .flatMap((page) => page.items)
            .map((e) => ({ name: e.name, detail: e.entrants.join(", ") })),
        ),
        named(
          "Models",
          "models",
          models.data?.items.map((m) => ({ name: m.name, detail: m.method ?? m.role })),
        ),
        named(
          "Datasets",
          "datasets",
          datasets.data?.items.map((d) => ({ name: d.name, detail: d.kind })),
        ),
      ]}
    />
  );
}

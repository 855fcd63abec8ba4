import { Spotlight, type SpotlightActionData } from "@mantine/spotlight";
import { IconSearch } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { datasetsQuery, modelsQuery } from "../api/data";
import { pipelinesQuery } from "../api/runs";

interface Place {
  to: string;
  label: string;
}

/** Ctrl+K: every page, pipeline, model and dataset by name. */
export function Palette({ project, places }: { project: string; places: readonly Place[] }) {
  const navigate = useNavigate();
  const pipelines = useQuery(pipelinesQuery(project));
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
        placeholder: "Page, pipeline, model or dataset",
        "aria-label": "Go to",
      }}
      actions={[
        {
          group: "Pages",
          actions: places.map(({ to, label }) => ({
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

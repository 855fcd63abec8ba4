import { Spotlight, type SpotlightActionData } from "@mantine/spotlight";
import { useDebouncedCallback } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { type SearchResult, searchQuery } from "../api/search";
import { byFit } from "./fit";

interface Place {
  to: string;
  label: string;
}

const DEBOUNCE_MS = 150;

/** Pages that are below another one in the navigation. */
const FURTHER: readonly Place[] = [
  { to: "/p/$project/imports", label: "Import a dataset" },
  { to: "/p/$project/evaluations/new", label: "New evaluation" },
  { to: "/p/$project/settings/members", label: "Settings: members" },
  { to: "/p/$project/settings/tokens", label: "Settings: tokens" },
  { to: "/p/$project/settings/notices", label: "Settings: notices" },
  { to: "/p/$project/settings/trackers", label: "Settings: trackers" },
  { to: "/p/$project/settings/audit", label: "Settings: audit log" },
];

const GROUPS: readonly { type: SearchResult["type"]; label: string; page: (one: SearchResult) => string }[] =
  [
    { type: "pipeline", label: "Pipelines", page: (one) => `pipelines/${encodeURIComponent(one.name)}` },
    { type: "run", label: "Runs", page: (one) => `runs/${one.id}` },
    {
      type: "evaluation",
      label: "Evaluations",
      page: (one) => `evaluations/${encodeURIComponent(one.name)}`,
    },
    { type: "model", label: "Models", page: (one) => `models/${encodeURIComponent(one.name)}` },
    { type: "dataset", label: "Datasets", page: (one) => `datasets/${encodeURIComponent(one.name)}` },
    { type: "campaign", label: "Ranking campaigns", page: (one) => `rank/${one.id}` },
    { type: "arena", label: "Arenas", page: (one) => `arena?a=${one.id}` },
  ];

/** Ctrl+K: every page, and everything on the server by its name, tags and notes. */
export function Palette({ project, places }: { project: string; places: readonly Place[] }) {
  const navigate = useNavigate();
  const [typed, setTyped] = useState("");
  const [asked, setAsked] = useState("");
  const [opened, setOpened] = useState(false);
  const later = useDebouncedCallback((text: string) => setAsked(text.trim()), DEBOUNCE_MS);
  const found = useQuery({ ...searchQuery(project, asked), enabled: opened });
  const go = (href: string) => () => void navigate({ href });
  const base = `/p/${project}`;
  const wanted = typed.trim().toLowerCase();
  const pages = byFit(
    [...places, ...FURTHER].filter(({ label }) => label.toLowerCase().includes(wanted)),
    ({ label }) => label,
    wanted,
  );
  const groups = [
    {
      group: "Pages",
      actions: pages.map(({ to, label }): SpotlightActionData => ({
        id: to,
        label,
        onClick: go(to.replace("$project", project)),
      })),
    },
    ...GROUPS.map(({ type, label, page }) => ({
      group: label,
      actions: byFit(
        (found.data ?? []).filter((one) => one.type === type),
        ({ name }) => name,
        wanted,
      ).map((one): SpotlightActionData => ({
        id: `${type}/${one.id}`,
        label: one.name,
        description: one.detail,
        onClick: go(`${base}/${page(one)}`),
      })),
    })),
  ];
  return (
    <Spotlight
      shortcut={["mod + K", "/"]}
      nothingFound={found.isFetching ? "Searching" : "No results"}
      highlightQuery
      scrollable
      maxHeight={420}
      // The server has found what fits; also by tags and notes, which are not shown.
      filter={(_query, actions) => actions}
      query={typed}
      onQueryChange={(text) => {
        setTyped(text);
        later(text);
      }}
      onSpotlightOpen={() => setOpened(true)}
      searchProps={{
        leftSection: <IconSearch size={18} />,
        placeholder: "Page, run, pipeline, evaluation, model or dataset",
        "aria-label": "Go to",
      }}
      actions={byFit(
        groups.filter(({ actions }) => actions.length > 0),
        ({ actions }) => actions[0]!.label ?? "",
        wanted,
      )}
    />
  );
}

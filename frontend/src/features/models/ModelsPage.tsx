import { Badge } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { Schemas } from "../../api/client";
import { modelsQuery } from "../../api/models/models";
import { runKindsQuery } from "../../api/runs/runKinds";
import { useMay } from "../../api/accounts/session";
import type { Column } from "../../shared/tables/DataTable";
import { Empty, Loaded } from "../../shared/Feedback";
import { bytes, count, percent } from "../../shared/format/format";
import { Link } from "../../shared/links";
import { NamedList } from "../../shared/NamedList";
import { Page } from "../../shared/Page";
import { When } from "../../shared/When";
import { Endpoints } from "./Endpoints";
import { heldOutAccuracy } from "./HeldOut";
import { ImportModel } from "./ImportModel";
import { StageBadge } from "./Promotion";
import { useByName } from "../../shared/forms/useByName";

type Model = Schemas["ModelOut"];

export function ModelsPage() {
  const { project } = getRouteApi("/p/$project/models").useParams();
  const { query, data, onSearchChange } = useByName((name) =>
    modelsQuery(project, name ? { name } : undefined),
  );
  const mayRun = useMay(project, "run");
  const kinds = useQuery(runKindsQuery(project));
  const makers = (kinds.data ?? []).filter((one) => one.makes_type === "model");
  const roles = [...new Set(makers.map((one) => one.makes!))].sort();
  const bringsIn = makers.find((one) => !one.training);
  const columns: Column<Model>[] = [
    {
      title: "Model",
      cell: (one) => (
        <Link
          to="/p/$project/models/$model"
          params={{ project, model: one.name }}
          fw={550}
          size="sm"
          style={{ overflowWrap: "anywhere" }}
        >
          {one.name}
        </Link>
      ),
    },
    {
      title: "Role",
      cell: (one) => (
        <Badge color="gray" miw="max-content">
          {one.role}
        </Badge>
      ),
    },
    { title: "Method", wide: true, cell: (one) => one.method ?? "–" },
    { title: "Stage", cell: (one) => (one.stage ? <StageBadge stage={one.stage} /> : "–") },
    {
      title: "Right on held-out pairs",
      wide: true,
      right: true,
      cell: (one) => percent(heldOutAccuracy(one)),
    },
    { title: "Parameters", wide: true, right: true, cell: (one) => count(one.info.parameters) },
    { title: "Size", wide: true, right: true, cell: (one) => bytes(one.size) },
    { title: "Created", wide: true, cell: (one) => <When at={one.created_at} /> },
  ];
  return (
    <Page
      title="Models"
      actions={mayRun && bringsIn && <ImportModel project={project} kind={bringsIn.kind} />}
    >
      <Loaded query={query}>
        {(page) =>
          page.items.length ? (
            <NamedList
              label="Models, the newest first"
              items={(data ?? page.items) as Model[]}
              columns={columns}
              below={(one) => (
                <>
                  {one.method && one.method !== one.role && `${one.method}, `}
                  {bytes(one.size)}, <When at={one.created_at} />
                </>
              )}
              sort={{ name: "Role", of: (one) => one.role, all: roles }}
              cut={!!page.next}
              onSearchChange={onSearchChange}
            />
          ) : (
            <Empty title="No models yet">
              Import one, or start a recipe; trained models appear here when their run ends.
            </Empty>
          )
        }
      </Loaded>
      <Endpoints project={project} />
    </Page>
  );
}

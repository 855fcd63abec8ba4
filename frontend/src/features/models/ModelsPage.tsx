import { Badge } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { Schemas } from "../../api/client";
import { listModels } from "../../api/models/models";
import { runKindsQuery } from "../../api/runs/runKinds";
import { useMay } from "../../api/accounts/session";
import { type Column, DataTable } from "../../shared/tables/DataTable";
import { Empty } from "../../shared/Feedback";
import { bytes, count, percent } from "../../shared/format/format";
import { Link } from "../../shared/links";
import { MarkedList } from "../../shared/marks/MarkedList";
import { NameCell } from "../../shared/marks/NameCell";
import { Page } from "../../shared/Page";
import { When } from "../../shared/When";
import { Endpoints } from "./Endpoints";
import { heldOutAccuracy } from "./HeldOut";
import { ImportModel } from "./ImportModel";
import { StageBadge } from "./Promotion";

type Model = Schemas["ModelOut"];

const route = getRouteApi("/p/$project/models");

export function ModelsPage() {
  const { project } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const mayRun = useMay(project, "run");
  const kinds = useQuery(runKindsQuery(project));
  const makers = (kinds.data ?? []).filter((one) => one.makes_type === "model");
  const roles = [...new Set(makers.map((one) => one.makes!))].sort();
  const bringsIn = makers.find((one) => !one.training);
  const columns: Column<Model>[] = [
    {
      title: "Model",
      cell: (one) => (
        <NameCell item={one.id} name={one.name}>
          <Link
            to="/p/$project/models/$model"
            params={{ project, model: one.name }}
            fw={550}
            size="sm"
            style={{ overflowWrap: "anywhere" }}
          >
            {one.name}
          </Link>
        </NameCell>
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
      title: "Held-out pair accuracy",
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
      <MarkedList
        project={project}
        type="model"
        search={search}
        onSearch={(next) => void navigate({ search: next, replace: true })}
        load={(asked) =>
          listModels(project, { ...asked, role: search.sort ? [search.sort as Model["role"]] : [] })
        }
        sort={{ name: "Role", all: roles }}
        none={
          <Empty title="No models yet">
            Import one, or start a recipe; trained models appear here when their run ends.
          </Empty>
        }
      >
        {(items) => (
          <DataTable
            label="Models, the newest first"
            rows={items as Model[]}
            columns={columns}
            keyOf={(one) => one.id}
            below={(one) => (
              <>
                {one.method && one.method !== one.role && `${one.method}, `}
                {bytes(one.size)}, <When at={one.created_at} />
              </>
            )}
          />
        )}
      </MarkedList>
      <Endpoints project={project} />
    </Page>
  );
}

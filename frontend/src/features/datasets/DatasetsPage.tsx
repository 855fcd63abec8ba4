import { getRouteApi } from "@tanstack/react-router";
import type { Schemas } from "../../api/client";
import { listDatasets } from "../../api/datasets/datasets";
import { useMay } from "../../api/accounts/session";
import { type Column, DataTable } from "../../shared/tables/DataTable";
import { Empty } from "../../shared/Feedback";
import { count } from "../../shared/format/format";
import { Link, LinkButton } from "../../shared/links";
import { MarkedList } from "../../shared/marks/MarkedList";
import { NameCell } from "../../shared/marks/NameCell";
import { Page } from "../../shared/Page";
import { When } from "../../shared/When";
import { Collections } from "./Collections";
import { UnfinishedImports } from "./imports/UnfinishedImports";

type Dataset = Schemas["DatasetOut"];

const route = getRouteApi("/p/$project/datasets");
const KINDS = ["instructions", "preferences", "prompts", "labelled", "unpaired", "stepwise"];

export function DatasetsPage() {
  const { project } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const mayWrite = useMay(project, "write");
  const begin = mayWrite && (
    <LinkButton component="a" to="/p/$project/imports" params={{ project }}>
      Import
    </LinkButton>
  );
  const columns: Column<Dataset>[] = [
    {
      title: "Dataset",
      cell: (one) => (
        <NameCell item={one.id} name={one.name}>
          <Link
            to="/p/$project/datasets/$dataset"
            params={{ project, dataset: one.name }}
            search={{}}
            fw={550}
            size="sm"
            style={{ overflowWrap: "anywhere" }}
          >
            {one.name}
          </Link>
        </NameCell>
      ),
    },
    { title: "Kind", wide: true, cell: (one) => one.kind },
    { title: "Rows", right: true, cell: (one) => count(one.rows) },
    { title: "Held out", right: true, cell: (one) => count(one.held_out_rows) },
    { title: "Rewards from", wide: true, cell: (one) => one.reward_source ?? "–" },
    { title: "Created", wide: true, cell: (one) => <When at={one.created_at} /> },
  ];
  return (
    <Page title="Datasets" actions={begin}>
      <UnfinishedImports project={project} />
      <MarkedList
        project={project}
        type="dataset"
        search={search}
        onSearch={(next) => void navigate({ search: next, replace: true })}
        load={(asked) =>
          listDatasets(project, { ...asked, kind: search.sort ? [search.sort as Dataset["kind"]] : [] })
        }
        sort={{ name: "Kind", all: KINDS }}
        none={
          <Empty title="No datasets yet">
            Instructions, preferences, prompts or graded answers from files, or from the Hugging Face hub.
          </Empty>
        }
      >
        {(items) => (
          <DataTable
            label="Datasets, the newest first"
            rows={items}
            columns={columns}
            keyOf={(one) => one.id}
            below={(one) => (
              <>
                {one.kind}, <When at={one.created_at} />
              </>
            )}
          />
        )}
      </MarkedList>
      <Collections project={project} />
    </Page>
  );
}

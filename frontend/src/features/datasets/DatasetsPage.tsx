import { getRouteApi } from "@tanstack/react-router";
import type { Schemas } from "../../api/client";
import { datasetsQuery } from "../../api/datasets/datasets";
import { useMay } from "../../api/accounts/session";
import type { Column } from "../../shared/tables/DataTable";
import { Empty, Loaded } from "../../shared/Feedback";
import { count } from "../../shared/format/format";
import { Link, LinkButton } from "../../shared/links";
import { NamedList } from "../../shared/NamedList";
import { Page } from "../../shared/Page";
import { When } from "../../shared/When";
import { Collections } from "./Collections";
import { UnfinishedImports } from "./imports/UnfinishedImports";
import { useByName } from "../../shared/forms/useByName";

type Dataset = Schemas["DatasetOut"];

const route = getRouteApi("/p/$project/datasets");
const KINDS = ["instructions", "preferences", "prompts", "labelled", "unpaired"];

export function DatasetsPage() {
  const { project } = route.useParams();
  const { query, data, onSearchChange } = useByName((name) =>
    datasetsQuery(project, name ? { name } : undefined),
  );
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
      ),
    },
    { title: "Kind", wide: true, cell: (one) => one.kind },
    { title: "Rows", right: true, cell: (one) => count(one.rows) },
    { title: "Held out", right: true, cell: (one) => count(one.held_out_rows) },
    { title: "Rewards from", wide: true, cell: (one) => one.reward_source ?? "–" },
    { title: "Created", wide: true, cell: (one) => <When at={one.created_at} /> },
  ];
  return (
    <Page title="Datasets" actions={!!query.data?.items.length && begin}>
      <UnfinishedImports project={project} />
      <Loaded query={query}>
        {(page) =>
          page.items.length ? (
            <NamedList
              label="Datasets, the newest first"
              items={data ?? page.items}
              columns={columns}
              below={(one) => (
                <>
                  {one.kind}, <When at={one.created_at} />
                </>
              )}
              sort={{ name: "Kind", of: (one) => one.kind, all: KINDS }}
              cut={!!page.next}
              onSearchChange={onSearchChange}
            />
          ) : (
            <Empty title="No datasets yet" action={begin}>
              Instructions, preferences, prompts or graded answers from files, or from the Hugging Face hub.
            </Empty>
          )
        }
      </Loaded>
      <Collections project={project} />
    </Page>
  );
}

import { useQueries, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { Schemas } from "../../api/client";
import { schemaQuery } from "../../api/runs/recipes";
import { runKindsQuery } from "../../api/runs/runKinds";
import { runQuery } from "../../api/runs/runs";
import { Empty, LoadedPage, Loading } from "../../shared/Feedback";
import { Link } from "../../shared/links";
import { Page } from "../../shared/Page";
import { asksEndpoints, ENDPOINT, firstSlot, MODEL } from "./inputSlots";
import { RunForm } from "./RunForm";

const route = getRouteApi("/p/$project/launch/$kind");

export function LaunchRunPage() {
  const { project, kind } = route.useParams();
  const { from, data: ofData, model: ofModel } = route.useSearch();
  const kindsQuery = useQuery(runKindsQuery(project));
  const card = kindsQuery.data?.find((one) => one.key === kind);
  const schemas = useQuery({ ...schemaQuery(project, card?.kind ?? ""), enabled: !!card });
  const origin = useQuery({ ...runQuery(project, from ?? ""), enabled: !!from });
  // What the cloned run read from others of its pipeline is by now a model or dataset with a name.
  const upstream = (origin.data?.inputs ?? []).filter((input) => input.type === "run");
  const makers = useQueries({ queries: upstream.map((input) => runQuery(project, input.id)) });
  const title = `Launch ${kind}`;
  const kinds = (
    <Link to="/p/$project/launch" params={{ project }} search={{}}>
      All recipes and runs
    </Link>
  );
  if (kindsQuery.data && !card)
    return (
      <Page title="Launch">
        <Empty title={`There is no run of the kind ${kind}`}>{kinds}</Empty>
      </Page>
    );
  return (
    <LoadedPage title={title} query={kindsQuery.error ? kindsQuery : schemas} others={kinds}>
      {(all) => {
        const schema = (all as Schemas["RunKindOut"][]).find((one) => one.key === kind)!;
        if (from && (!origin.data || makers.some((maker) => maker.isPending)))
          return (
            <LoadedPage title={title} query={origin}>
              {() => (
                <Page title={title}>
                  <Loading />
                </Page>
              )}
            </LoadedPage>
          );
        const made = upstream.map((input, at): [string, string] => [
          input.name,
          makers[at]?.data?.outputs[0]?.label ?? "",
        ]);
        const named = (origin.data?.inputs ?? [])
          .filter((input) => input.type !== "run")
          .map((input): [string, string] => [input.name, input.label]);
        return (
          <RunForm
            key={`${kind} ${from} ${ofData} ${ofModel}`}
            project={project}
            schema={schema}
            origin={origin.data}
            given={{
              ...(ofData ? { [firstSlot(schema, "dataset")]: ofData } : {}),
              ...(ofModel ? { [firstSlot(schema, "model")]: ofModel } : {}),
              ...Object.fromEntries([...named, ...made]),
              ...(asksEndpoints(schema) && origin.data?.config[ENDPOINT]
                ? { [MODEL]: String(origin.data.config[ENDPOINT]) }
                : {}),
            }}
          />
        );
      }}
    </LoadedPage>
  );
}

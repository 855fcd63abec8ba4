import { Box, Container } from "@mantine/core";
import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  type ErrorComponentProps,
  lazyRouteComponent,
  Outlet,
  redirect,
  useRouter,
} from "@tanstack/react-router";
import { useEffect } from "react";
import { Problem } from "../api/client";
import { opens, sessionQuery } from "../api/accounts/session";
import { Failure, Loading } from "../shared/Feedback";
import { NoPage } from "./NoPage";
import { Shell } from "./Shell";
import { listSearch } from "../shared/marks/listing";
import { datasetSearch, evaluationSearch, listOf, runsSearch, textOf } from "../shared/search";

const root = createRootRouteWithContext<{ client: QueryClient }>()({ component: Outlet });

async function signedIn(client: QueryClient) {
  try {
    return await client.ensureQueryData(sessionQuery);
  } catch (error) {
    if (error instanceof Problem && [401, 403].includes(error.status)) {
      throw redirect({ to: "/sign-in", search: { back: window.location.pathname + window.location.search } });
    }
    throw error;
  }
}

const TRY_AGAIN_MS = 3000;

/** Before it is known who asks, there is no frame around a page. */
const unframed = {
  pendingComponent: () => (
    <Box component="main" p="xl">
      <Loading />
    </Box>
  ),
  errorComponent: function NoSession({ error }: ErrorComponentProps) {
    const router = useRouter();
    useEffect(() => {
      if (!(error instanceof Problem) || error.code !== "unreachable") return;
      const timer = setTimeout(() => void router.invalidate(), TRY_AGAIN_MS);
      return () => clearTimeout(timer);
    }, [error, router]);
    return (
      <Container component="main" size="sm" py="xl">
        <Failure error={error as Error} retry={() => void router.invalidate()} />
      </Container>
    );
  },
};

const front = createRoute({
  getParentRoute: () => root,
  path: "/",
  beforeLoad: async ({ context }) => {
    const session = await signedIn(context.client);
    const first = session.projects[0];
    if (first) throw redirect({ to: "/p/$project", params: { project: first.name } });
  },
  component: lazyRouteComponent(() => import("../features/session/NoProject"), "NoProject"),
  ...unframed,
});

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: (search): { back?: string; problem?: string } => ({
    back: textOf(search.back),
    problem: textOf(search.problem),
  }),
  component: lazyRouteComponent(() => import("../features/session/SignIn"), "SignIn"),
});

const project = createRoute({
  getParentRoute: () => root,
  path: "/p/$project",
  beforeLoad: async ({ context, params, location }) => {
    const session = await signedIn(context.client);
    const member = session.projects.some((one) => one.name === params.project);
    // Before the page mounts: it would ask for what it is refused.
    if (member && !opens(session, params.project, location.pathname))
      throw redirect({ to: "/p/$project/rank", params, replace: true });
  },
  component: Shell,
  ...unframed,
});

const tabOf = (search: Record<string, unknown>): { tab?: string } => ({ tab: textOf(search.tab) });

const page = <Path extends string>(path: Path) => ({ getParentRoute: () => project, path });

const settings = createRoute({
  ...page("settings"),
  component: lazyRouteComponent(() => import("../features/settings/SettingsPage"), "SettingsPage"),
});
const tab = <Path extends string>(path: Path) => ({ getParentRoute: () => settings, path });

const tabs = [
  createRoute({
    ...tab("/"),
    beforeLoad: ({ params }) => {
      throw redirect({ to: "/p/$project/settings/account", params });
    },
  }),
  createRoute({
    ...tab("account"),
    component: lazyRouteComponent(() => import("../features/settings/AccountPage"), "AccountPage"),
  }),
  createRoute({
    ...tab("members"),
    component: lazyRouteComponent(() => import("../features/settings/members/MembersPage"), "MembersPage"),
  }),
  createRoute({
    ...tab("tokens"),
    component: lazyRouteComponent(() => import("../features/settings/TokensPage"), "TokensPage"),
  }),
  createRoute({
    ...tab("audit"),
    validateSearch: (search): { actor?: string; action?: string; outside?: true } => ({
      actor: textOf(search.actor),
      action: textOf(search.action),
      outside: search.outside === true || undefined,
    }),
    component: lazyRouteComponent(() => import("../features/settings/AuditPage"), "AuditPage"),
  }),
  createRoute({
    ...tab("notices"),
    // The rule whose deliveries are shown.
    validateSearch: (search): { of?: string } => ({ of: textOf(search.of) }),
    component: lazyRouteComponent(() => import("../features/settings/notices/NoticesPage"), "NoticesPage"),
  }),
  createRoute({
    ...tab("trackers"),
    component: lazyRouteComponent(() => import("../features/settings/trackers/TrackersPage"), "TrackersPage"),
  }),
  createRoute({
    ...tab("project"),
    component: lazyRouteComponent(() => import("../features/settings/ProjectPage"), "ProjectPage"),
  }),
] as const;

const pages = [
  createRoute({ ...page("/"), component: lazyRouteComponent(() => import("../features/home/Home"), "Home") }),
  createRoute({
    ...page("runs"),
    validateSearch: runsSearch,
    component: lazyRouteComponent(() => import("../features/runs/list/RunsPage"), "RunsPage"),
  }),
  createRoute({
    ...page("runs/$run"),
    validateSearch: tabOf,
    component: lazyRouteComponent(() => import("../features/runs/RunPage"), "RunPage"),
  }),
  createRoute({
    ...page("queue"),
    component: lazyRouteComponent(() => import("../features/queue/QueuePage"), "QueuePage"),
  }),
  createRoute({
    ...page("rank"),
    component: lazyRouteComponent(() => import("../features/ranking/CampaignsPage"), "CampaignsPage"),
  }),
  createRoute({
    ...page("rank/$campaign"),
    component: lazyRouteComponent(() => import("../features/ranking/RankPage"), "RankPage"),
  }),
  createRoute({
    ...page("rank/$campaign/review"),
    component: lazyRouteComponent(() => import("../features/ranking/review/ReviewPage"), "ReviewPage"),
  }),
  createRoute({
    ...page("evaluations"),
    validateSearch: listSearch,
    component: lazyRouteComponent(() => import("../features/evaluations/EvaluationsPage"), "EvaluationsPage"),
  }),
  createRoute({
    ...page("evaluations/$evaluation/campaigns/$campaign"),
    component: lazyRouteComponent(
      () => import("../features/evaluations/campaigns/QualityPage"),
      "QualityPage",
    ),
  }),
  createRoute({
    ...page("evaluations/new"),
    // A model to begin with.
    validateSearch: (search): { model?: string } => ({ model: textOf(search.model) }),
    component: lazyRouteComponent(
      () => import("../features/evaluations/create/NewEvaluationPage"),
      "NewEvaluationPage",
    ),
  }),
  createRoute({
    ...page("evaluations/$evaluation"),
    validateSearch: evaluationSearch,
    component: lazyRouteComponent(() => import("../features/evaluations/EvaluationPage"), "EvaluationPage"),
  }),
  createRoute({
    ...page("pipelines"),
    validateSearch: listSearch,
    component: lazyRouteComponent(() => import("../features/pipelines/PipelinesPage"), "PipelinesPage"),
  }),
  createRoute({
    ...page("pipelines/$pipeline"),
    // The stages in the charts, by name, and what they are put into groups by.
    validateSearch: (search): { tab?: string; stages?: string[]; group?: string } => ({
      ...tabOf(search),
      stages: listOf(search.stages),
      group: textOf(search.group),
    }),
    component: lazyRouteComponent(() => import("../features/pipelines/PipelinePage"), "PipelinePage"),
  }),
  createRoute({
    ...page("launch"),
    // The pipeline that is launched again, or the dataset that is to be used, where it is one.
    validateSearch: (search): { recipe?: string; from?: string; data?: string } => ({
      data: textOf(search.data),
      recipe: textOf(search.recipe),
      from: textOf(search.from),
    }),
    component: lazyRouteComponent(() => import("../features/launch/LaunchPage"), "LaunchPage"),
  }),
  createRoute({
    ...page("launch/$kind"),
    validateSearch: (search): { from?: string; data?: string; model?: string } => ({
      from: textOf(search.from),
      data: textOf(search.data),
      model: textOf(search.model),
    }),
    component: lazyRouteComponent(() => import("../features/launch/LaunchRunPage"), "LaunchRunPage"),
  }),
  createRoute({
    ...page("compare"),
    validateSearch: (
      search,
    ): { runs?: string[]; metric?: string[]; pipeline?: string[]; group?: string } => ({
      runs: listOf(search.runs),
      metric: listOf(search.metric),
      group: textOf(search.group),
      pipeline: listOf(search.pipeline),
    }),
    component: lazyRouteComponent(() => import("../features/compare/ComparePage"), "ComparePage"),
  }),
  createRoute({
    ...page("playground"),
    validateSearch: (search): { c?: string; model?: string } => ({
      c: textOf(search.c),
      model: textOf(search.model),
    }),
    component: lazyRouteComponent(() => import("../features/playground/PlaygroundPage"), "PlaygroundPage"),
  }),
  createRoute({
    ...page("arena"),
    // Arena, battle, and which half of the page.
    validateSearch: (search): { a?: string; b?: string; tab?: string } => ({
      a: textOf(search.a),
      b: textOf(search.b),
      tab: textOf(search.tab),
    }),
    component: lazyRouteComponent(() => import("../features/arena/ArenaPage"), "ArenaPage"),
  }),
  createRoute({
    ...page("datasets"),
    validateSearch: listSearch,
    component: lazyRouteComponent(() => import("../features/datasets/DatasetsPage"), "DatasetsPage"),
  }),
  createRoute({
    ...page("datasets/$dataset"),
    validateSearch: datasetSearch,
    component: lazyRouteComponent(() => import("../features/datasets/DatasetPage"), "DatasetPage"),
  }),
  createRoute({
    ...page("imports"),
    component: lazyRouteComponent(
      () => import("../features/datasets/imports/NewImportPage"),
      "NewImportPage",
    ),
  }),
  createRoute({
    ...page("imports/$import"),
    component: lazyRouteComponent(() => import("../features/datasets/imports/ImportPage"), "ImportPage"),
  }),
  createRoute({
    ...page("models"),
    validateSearch: listSearch,
    component: lazyRouteComponent(() => import("../features/models/ModelsPage"), "ModelsPage"),
  }),
  createRoute({
    ...page("models/$model"),
    component: lazyRouteComponent(() => import("../features/models/ModelPage"), "ModelPage"),
  }),
  settings.addChildren(tabs),
] as const;

const tree = root.addChildren([front, signIn, project.addChildren(pages)]);

export function makeRouter(client: QueryClient) {
  return createRouter({
    routeTree: tree,
    context: { client },
    defaultPreload: "intent",
    scrollRestoration: true,
    defaultPendingComponent: () => <Loading />,
    defaultErrorComponent: ({ error, reset }) => <Failure error={error as Error} retry={reset} />,
    defaultNotFoundComponent: NoPage,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}

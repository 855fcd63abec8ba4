import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import { Problem } from "../api/client";
import { sessionQuery } from "../api/session";
import { Failure, Loading } from "../shared/Feedback";
import { Shell } from "./Shell";
import { listOf, textOf } from "../shared/search";

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

const front = createRoute({
  getParentRoute: () => root,
  path: "/",
  beforeLoad: async ({ context }) => {
    const session = await signedIn(context.client);
    const first = session.projects[0];
    if (first) throw redirect({ to: "/p/$project", params: { project: first.name } });
  },
  component: lazyRouteComponent(() => import("../features/session/NoProject"), "NoProject"),
});

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: (search): { back?: string } => ({ back: textOf(search.back) }),
  component: lazyRouteComponent(() => import("../features/session/SignIn"), "SignIn"),
});

const project = createRoute({
  getParentRoute: () => root,
  path: "/p/$project",
  beforeLoad: ({ context }) => signedIn(context.client),
  component: Shell,
});

const page = <Path extends string>(path: Path) => ({ getParentRoute: () => project, path });

const pages = [
  createRoute({ ...page("/"), component: lazyRouteComponent(() => import("../features/home/Home"), "Home") }),
  createRoute({
    ...page("runs"),
    validateSearch: (search): { state?: string[]; kind?: string[] } => ({
      state: listOf(search.state),
      kind: listOf(search.kind),
    }),
    component: lazyRouteComponent(() => import("../features/runs/RunsPage"), "RunsPage"),
  }),
  createRoute({
    ...page("runs/$run"),
    component: lazyRouteComponent(() => import("../features/runs/RunPage"), "RunPage"),
  }),
  createRoute({
    ...page("pipelines"),
    component: lazyRouteComponent(() => import("../features/pipelines/PipelinesPage"), "PipelinesPage"),
  }),
  createRoute({
    ...page("pipelines/$pipeline"),
    component: lazyRouteComponent(() => import("../features/pipelines/PipelinePage"), "PipelinePage"),
  }),
  createRoute({
    ...page("launch"),
    validateSearch: (search): { recipe?: string } => ({ recipe: textOf(search.recipe) }),
    component: lazyRouteComponent(() => import("../features/launch/LaunchPage"), "LaunchPage"),
  }),
  createRoute({
    ...page("launch/$kind"),
    validateSearch: (search): { from?: string } => ({ from: textOf(search.from) }),
    component: lazyRouteComponent(() => import("../features/launch/LaunchRunPage"), "LaunchRunPage"),
  }),
  createRoute({
    ...page("compare"),
    validateSearch: (search): { runs?: string[] } => ({ runs: listOf(search.runs) }),
    component: lazyRouteComponent(() => import("../features/compare/ComparePage"), "ComparePage"),
  }),
  createRoute({
    ...page("datasets"),
    component: lazyRouteComponent(() => import("../features/datasets/DatasetsPage"), "DatasetsPage"),
  }),
  createRoute({
    ...page("datasets/$dataset"),
    validateSearch: (search): { split?: "train" | "held_out" } => ({
      split: search.split === "train" || search.split === "held_out" ? search.split : undefined,
    }),
    component: lazyRouteComponent(() => import("../features/datasets/DatasetPage"), "DatasetPage"),
  }),
  createRoute({
    ...page("models"),
    component: lazyRouteComponent(() => import("../features/models/ModelsPage"), "ModelsPage"),
  }),
  createRoute({
    ...page("models/$model"),
    component: lazyRouteComponent(() => import("../features/models/ModelPage"), "ModelPage"),
  }),
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
    defaultNotFoundComponent: () => (
      <Failure error={new Error("There is no such page. Check the address.")} />
    ),
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}

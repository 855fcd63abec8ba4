import { getRouteApi } from "@tanstack/react-router";

const route = getRouteApi("/p/$project/evaluations/$evaluation");

/** Whether the tab's form is open; a link can open it. */
export function useAsking(): [boolean, { open: () => void; close: () => void }] {
  const { ask } = route.useSearch();
  const navigate = route.useNavigate();
  const set = (to: true | undefined) =>
    void navigate({ search: (now) => ({ ...now, ask: to }), replace: true, resetScroll: false });
  return [ask === true, { open: () => set(true), close: () => set(undefined) }];
}

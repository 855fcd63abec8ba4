import type { ReactNode } from "react";
import { useMay } from "../../api/accounts/session";
import { Empty } from "../../shared/Feedback";
import { useProject } from "../../shared/links";

/** The page for owners of the project; for others, why it is empty. */
export function OwnersOnly({ what, children }: { what: string; children: ReactNode }) {
  const project = useProject();
  if (useMay(project, "admin")) return children;
  return (
    <Empty title={`${what} are for owners`}>
      Your role in {project} does not show them. Ask one of its owners for what you need, or to make you an
      owner.
    </Empty>
  );
}

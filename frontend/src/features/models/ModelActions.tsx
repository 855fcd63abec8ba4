import type { Schemas } from "../../api/client";
import { LinkButton } from "../../shared/links";
import { PromoteButton } from "./Promotion";

export function ModelActions({ project, model }: { project: string; model: Schemas["ModelDetail"] }) {
  const answers = ["base", "sft", "policy"].includes(model.role);
  return (
    <>
      {answers && (
        <LinkButton
          component="a"
          variant="default"
          to="/p/$project/playground"
          params={{ project }}
          search={{ model: model.name }}
        >
          Try it
        </LinkButton>
      )}
      <PromoteButton project={project} model={model} />
    </>
  );
}

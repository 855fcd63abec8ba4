import type { Schemas } from "../../api/client";
import { useMay } from "../../api/session";
import { LinkButton } from "../../shared/links";
import { PromoteButton } from "./Promotion";

export function ModelActions({ project, model }: { project: string; model: Schemas["ModelDetail"] }) {
  const answers = ["base", "sft", "policy"].includes(model.role);
  const mayRun = useMay(project, "run");
  return (
    <>
      {model.role === "reward" && mayRun && (
        <LinkButton
          component="a"
          variant="default"
          to="/p/$project/launch/$kind"
          params={{ project, kind: "benchmark" }}
          search={{ model: model.name }}
        >
          Benchmark it
        </LinkButton>
      )}
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

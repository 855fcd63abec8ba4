import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../api/client";
import { runKindsQuery } from "../../api/runs/runKinds";
import { useMay } from "../../api/accounts/session";
import { PushToHub } from "../../shared/forms/PushToHub";
import { LinkButton } from "../../shared/links";
import { ExportGguf } from "./ExportGguf";
import { PromoteButton } from "./Promotion";

export function ModelActions({ project, model }: { project: string; model: Schemas["ModelDetail"] }) {
  const mayRun = useMay(project, "run");
  const kinds = useQuery(runKindsQuery(project));
  const uses = mayRun ? (kinds.data ?? []).filter((one) => one.for_model[model.role]) : [];
  return (
    <>
      {uses.map(({ key, for_model }) => (
        <LinkButton
          key={key}
          component="a"
          variant="default"
          to="/p/$project/launch/$kind"
          params={{ project, kind: key }}
          search={{ model: model.name }}
        >
          {for_model[model.role]}
        </LinkButton>
      ))}
      {model.answers && (
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
      {model.answers && <ExportGguf project={project} model={model.name} />}
      <PushToHub project={project} kind="models" name={model.name} adapter={!!model.info.lora} />
      <PromoteButton project={project} model={model} />
    </>
  );
}

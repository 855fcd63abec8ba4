import { Card, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../api/client";
import { runQuery } from "../../api/runs/runs";
import { Facts, type Fact } from "../../shared/Facts";
import { count, percent } from "../../shared/format/format";
import { HeldOutChanges } from "../../shared/HeldOutChanges";

type Model = Pick<Schemas["ModelOut"], "role" | "info">;

/** Whether it judges answers: by rewards, or by comparing two. */
export function judges({ role }: Model): boolean {
  return role === "reward" || role === "preference";
}

/** Figures of its training, by name. */
function figures({ info }: Model): Record<string, number | undefined> {
  const found = Object.entries((info.summary ?? {}) as Record<string, unknown>);
  return Object.fromEntries(found.filter((one): one is [string, number] => typeof one[1] === "number"));
}

/** How often it was right when its training ended; undefined for models that judge nothing. */
export function heldOutAccuracy(model: Model): number | undefined {
  return judges(model) ? figures(model).held_out_accuracy : undefined;
}

/** How far a reward or preference model can be trusted, on pairs that it was not trained on. */
export function HeldOut({ model }: { model: Model }) {
  const accuracy = heldOutAccuracy(model);
  if (accuracy === undefined) return null;
  const { pairs, flip_rate: flips, calibration_error: error } = figures(model);
  const facts: Fact[] = [
    ["Right", percent(accuracy), pairs === undefined ? undefined : `of ${count(pairs)} held-out pairs`],
  ];
  if (flips !== undefined) facts.push(["Flips with the order", percent(flips), "asked in both orders"]);
  if (error !== undefined)
    facts.push(["Calibration error", percent(error), "between its probability and how often it is right"]);
  return (
    <Card withBorder>
      <Title order={2} size="h6" mb="xs">
        On held-out pairs
      </Title>
      <Facts facts={facts} columns={facts.length} />
    </Card>
  );
}

/** Held-out rows that people changed in the data of the run that made a model. */
export function TrainedOnChanges({ project, run }: { project: string; run: string }) {
  const query = useQuery(runQuery(project, run));
  return <HeldOutChanges changes={query.data?.held_out_changes ?? []} />;
}

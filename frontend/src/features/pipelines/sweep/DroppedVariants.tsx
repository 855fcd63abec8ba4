import { Alert, List, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { sweepQuery } from "../../../api/runs/pipelines";
import { written } from "./axes";

const SHOWN = 6;

/** Which variants successive halving has left out, after which rung and for which figure. */
export function DroppedVariants({ project, pipeline }: { project: string; pipeline: string }) {
  const { data: sweep } = useQuery(sweepQuery(project, pipeline));
  const dropped = sweep?.variants.filter((variant) => variant.dropped_after !== null) ?? [];
  if (!sweep || dropped.length === 0) return null;
  const more = dropped.length - SHOWN;
  return (
    <Alert
      color="gray"
      variant="light"
      title={`${dropped.length} of ${sweep.variants.length} variants were dropped`}
    >
      <List size="sm" listStyleType="none" style={{ overflowWrap: "anywhere" }}>
        {dropped.slice(0, SHOWN).map((variant) => (
          <List.Item key={variant.number}>
            <strong>Variant {variant.number}</strong> (
            {sweep.fields.map((field) => `${field} ${written(variant.values[field])}`).join(", ")}):{" "}
            {variant.reason}
            {variant.dropped_within_noise && "; within noise of the best of that rung"}
          </List.Item>
        ))}
      </List>
      {more > 0 && <Text size="sm">{more} more are in the table of variants.</Text>}
    </Alert>
  );
}

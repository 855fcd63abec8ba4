import { Alert, Badge, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../../api/client";
import { sweepQuery } from "../../../api/runs/pipelines";
import { short } from "../../../shared/format/format";
import { written } from "./axes";

type Variant = Schemas["VariantRow"];
const SHOWN = 6;

/** Which variants successive halving has left out: after which rung, for which figure, and how sure that is. */
export function DroppedVariants({ project, pipeline }: { project: string; pipeline: string }) {
  const { data: sweep } = useQuery(sweepQuery(project, pipeline));
  const dropped = sweep?.variants.filter((variant) => variant.dropped_after !== null) ?? [];
  if (!sweep || dropped.length === 0) return null;
  const more = dropped.length - SHOWN;
  return (
    <Alert
      color="gray"
      variant="light"
      title={`${dropped.length} of ${sweep.variants.length} variants ${dropped.length === 1 ? "was" : "were"} dropped`}
    >
      <Stack gap={6} role="list" aria-label="Dropped variants" style={{ overflowWrap: "anywhere" }}>
        {dropped.slice(0, SHOWN).map((variant) => (
          <Text key={variant.number} size="sm" component="div" role="listitem">
            <strong>Variant {variant.number}</strong> (
            {sweep.fields.map((field) => `${field} ${written(variant.values[field])}`).join(", ")}):{" "}
            {variant.reason}
            {intervalOf(variant)}
            {variant.dropped_within_noise && (
              <>
                {" "}
                <Badge
                  variant="default"
                  size="sm"
                  title="Its interval overlaps with that of the best of that rung."
                >
                  within noise
                </Badge>
              </>
            )}
          </Text>
        ))}
      </Stack>
      {more > 0 && (
        <Text size="sm" mt={6}>
          {more} more are in the table of variants.
        </Text>
      )}
    </Alert>
  );
}

/** The interval of the figure of the rung after which it was dropped; empty where the figure has none. */
function intervalOf(variant: Variant): string {
  const rung = variant.rungs.find((one) => one.rung === variant.dropped_after);
  if (typeof rung?.low !== "number" || typeof rung.high !== "number") return "";
  return `; 95% interval ${short(rung.low)} to ${short(rung.high)}`;
}

import { Card, SimpleGrid, Title } from "@mantine/core";
import type { Schemas } from "../../api/client";
import { asksEndpoints, DATA, keysOf, MODEL } from "./inputSlots";
import { MixDatasets } from "./mixing/MixDatasets";
import { mixedFor } from "./mixing/mixture";
import { ThingSelect } from "./ThingSelect";

interface Properties {
  project: string;
  schema: Schemas["RunKindOut"];
  given: Record<string, string>;
  /** What the server refused, by key. */
  faults: Record<string, string>;
  onChange: (key: string, value: string) => void;
}

/** The models and datasets that a run reads. */
export function Inputs({ project, schema, given, faults, onChange }: Properties) {
  // What a method learns from; a kind that takes many datasets mixes or compares them itself.
  const mixed = (slot: Schemas["RunKindOut"]["inputs"][number]) =>
    schema.training && slot.name === DATA ? mixedFor(slot.allowed) : null;
  return (
    <Card withBorder>
      <Title order={2} size="h5" mb="sm">
        Inputs
      </Title>
      <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }}>
        {schema.inputs.flatMap((slot) =>
          keysOf(slot, given).map((key, at) => (
            <div key={key}>
              <ThingSelect
                project={project}
                type={slot.type}
                allowed={slot.allowed}
                endpoints={slot.name === MODEL && asksEndpoints(schema)}
                label={key}
                required={slot.required && at === 0}
                value={given[key] ?? null}
                error={faults[key]}
                onChange={(value) => onChange(key, value ?? "")}
              />
              {mixed(slot) && (
                <MixDatasets
                  project={project}
                  makes={mixed(slot)!}
                  first={given[key] || null}
                  onMade={(dataset) => onChange(key, dataset)}
                />
              )}
            </div>
          )),
        )}
      </SimpleGrid>
    </Card>
  );
}

import { Button, Group, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useMay } from "../../../api/accounts/session";
import type { Schemas } from "../../../api/client";
import { datasetMethodsQuery, type MethodFit } from "../../../api/datasets/conversions";
import { Loaded } from "../../../shared/Feedback";
import { counted } from "../../../shared/format/format";
import { DataTable } from "../../../shared/tables/DataTable";
import { ConversionCards } from "./ConversionCards";
import { DirectTable } from "./DirectTable";

/** Up to here the rows are counted immediately; more take seconds to minutes. */
const COUNTED_AT_ONCE = 50_000;

/** Which methods fit a dataset, as it is or after a conversion, with the rows that each would get. */
export function MethodsView({ project, dataset }: { project: string; dataset: Schemas["DatasetOut"] }) {
  const [asked, setAsked] = useState(dataset.rows <= COUNTED_AT_ONCE);
  const query = useQuery({ ...datasetMethodsQuery(project, dataset.name), enabled: asked });
  const mayRun = useMay(project, "run");
  const mayWrite = useMay(project, "write");
  return (
    <Stack>
      <Text size="sm" c="dimmed" maw={720}>
        What each method would learn from these rows with its default settings, counted before anything is
        launched. A conversion makes a new dataset; this one stays as it is.
      </Text>
      {!asked ? (
        <Group>
          <Button onClick={() => setAsked(true)}>Count</Button>
          <Text size="sm" c="dimmed">
            Counting {counted(dataset.rows, "row")} takes a while.
          </Text>
        </Group>
      ) : (
        <Loaded query={query} rows={6}>
          {({ methods }) => (
            <Stack gap="xl">
              <Fits title="Fit as it is" methods={methods.filter((one) => one.fit === "as_is")}>
                {(fits) => <DirectTable project={project} dataset={dataset.name} fits={fits} may={mayRun} />}
              </Fits>
              <Fits
                title="Fit after a conversion"
                // One that fits as it is may also be reached by a conversion.
                methods={methods.filter((one) => one.ways.some((way) => way.conversion && !way.why_not))}
              >
                {(fits) => (
                  <ConversionCards
                    project={project}
                    dataset={dataset.name}
                    fits={fits}
                    may={mayRun && mayWrite}
                  />
                )}
              </Fits>
              <Fits title="Do not fit" methods={methods.filter((one) => one.fit === "none")}>
                {(fits) => (
                  <DataTable
                    label="Methods that do not fit"
                    rows={fits}
                    keyOf={(one) => one.method}
                    columns={[
                      { title: "Method", cell: (one) => one.title },
                      { title: "Why not", cell: (one) => one.why_not },
                    ]}
                  />
                )}
              </Fits>
            </Stack>
          )}
        </Loaded>
      )}
    </Stack>
  );
}

function Fits({
  title,
  methods,
  children,
}: {
  title: string;
  methods: MethodFit[];
  children: (methods: MethodFit[]) => ReactNode;
}) {
  if (!methods.length) return null;
  return (
    <section aria-label={title}>
      <Title order={2} size="h5" mb="xs">
        {title}
      </Title>
      {children(methods)}
    </section>
  );
}

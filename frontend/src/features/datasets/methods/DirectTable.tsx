import type { MethodFit } from "../../../api/datasets/conversions";
import { Text } from "@mantine/core";
import { count } from "../../../shared/format/format";
import { LinkButton } from "../../../shared/links";
import { DataTable } from "../../../shared/tables/DataTable";

interface Properties {
  project: string;
  dataset: string;
  fits: MethodFit[];
  may: boolean;
}

/** Methods that learn from a dataset as it is. */
export function DirectTable({ project, dataset, fits, may }: Properties) {
  const rows = fits.map((fit) => ({ fit, way: fit.ways[0]! }));
  return (
    <DataTable
      label="Methods that fit"
      rows={rows}
      keyOf={({ fit }) => fit.method}
      columns={[
        {
          title: "Method",
          cell: ({ fit }) => (
            <>
              {fit.title}
              <Text size="xs" c="dimmed" visibleFrom="sm">
                {fit.about}
              </Text>
            </>
          ),
        },
        { title: "To learn from", cell: ({ way }) => count(way.train), right: true },
        { title: "Held out", cell: ({ way }) => count(way.held_out), right: true },
        { title: "Left out", cell: ({ way }) => count(way.left_out), right: true, wide: true },
        ...(may
          ? [
              {
                title: "",
                right: true,
                cell: ({ fit }: (typeof rows)[number]) => (
                  <LinkButton
                    component="a"
                    size="compact-sm"
                    variant="light"
                    to="/p/$project/launch/$kind"
                    params={{ project, kind: fit.method }}
                    search={{ data: dataset }}
                    aria-label={`Launch ${fit.title}`}
                  >
                    Launch
                  </LinkButton>
                ),
              },
            ]
          : []),
      ]}
    />
  );
}

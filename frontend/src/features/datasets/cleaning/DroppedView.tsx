import { Select, Stack, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Schemas } from "../../../api/client";
import { droppedQuery, type Reason } from "../../../api/datasets/cleaning";
import { Loaded } from "../../../shared/Feedback";
import { count, counted } from "../../../shared/format/format";
import { Link } from "../../../shared/links";
import { DroppedPair } from "./DroppedPair";
import { title } from "./RuleCard";
import { More } from "../../../shared/More";

/** What a cleaned dataset lacks, and why. */
export function DroppedView({ project, dataset }: { project: string; dataset: Schemas["DatasetOut"] }) {
  const { of, of_id, dropped, read } = dataset.origin as {
    of: string;
    of_id: string;
    read: number;
    dropped: Partial<Record<Reason, number>>;
  };
  const [rule, setRule] = useState<Reason | null>(null);
  const query = useInfiniteQuery(droppedQuery(project, dataset.name, rule));
  const counts = Object.entries(dropped) as [Reason, number][];
  const total = counts.reduce((sum, [, rows]) => sum + rows, 0);
  return (
    <Stack>
      <Text size="sm" c="dimmed">
        {count(total)} of the {counted(read, "row")} of{" "}
        <Link
          size="sm"
          underline="always"
          to="/p/$project/datasets/$dataset"
          params={{ project, dataset: of_id }}
          search={{}}
        >
          {of}
        </Link>{" "}
        are not in this version.
      </Text>
      <Select
        label="Why"
        maw={320}
        clearable
        placeholder={`all: ${counted(total, "row")}`}
        data={counts.map(([value, rows]) => ({ value, label: `${title(value)}: ${count(rows)}` }))}
        value={rule}
        onChange={(value) => setRule(value as Reason | null)}
      />
      <Loaded query={query} rows={4}>
        {(found) => (
          <Stack gap="sm">
            {found.pages
              .flatMap((page) => page.items)
              .map((row) => (
                <div key={row.row}>
                  {rule === null && (
                    <Text size="xs" c="dimmed">
                      {title(row.rule)}
                    </Text>
                  )}
                  <DroppedPair row={row} />
                </div>
              ))}
            <More query={query} />
          </Stack>
        )}
      </Loaded>
    </Stack>
  );
}

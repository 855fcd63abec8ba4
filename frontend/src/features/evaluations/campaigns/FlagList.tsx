import { Badge, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { Schemas } from "../../../api/client";
import { type Campaign, flagsQuery } from "../../../api/evaluation/campaigns";
import type { Evaluation } from "../../../api/evaluation/evaluations";
import { DataTable, type Column } from "../../../shared/tables/DataTable";
import { Loaded } from "../../../shared/Feedback";
import { When } from "../../../shared/When";

interface Properties {
  project: string;
  evaluation: Evaluation;
  campaign: Campaign;
}

/** What annotators flagged or skipped, in their words. */
export function FlagList({ project, evaluation, campaign }: Properties) {
  const query = useQuery(flagsQuery(project, evaluation.id, campaign.id));
  const columns: Column<Schemas["FlagOut"]>[] = [
    { title: "Prompt", cell: (one) => `${one.position + 1} (${one.question_id})` },
    {
      title: "What",
      cell: (one) => <Badge color={one.kind === "flag" ? "orange" : "gray"}>{one.kind}</Badge>,
    },
    {
      title: "Why",
      cell: (one) => (
        <Text size="sm" style={{ overflowWrap: "anywhere" }}>
          {[one.reason, one.comment].filter(Boolean).join(": ") || "–"}
        </Text>
      ),
    },
    { title: "Who", wide: true, cell: (one) => one.annotator },
    { title: "When", wide: true, cell: (one) => <When at={one.at} /> },
  ];
  return (
    <Loaded query={query} rows={3}>
      {(found) =>
        found.items.length ? (
          <DataTable
            label="Flags and skips, the newest first"
            rows={found.items}
            columns={columns}
            keyOf={(one) => `${one.position} ${one.annotator} ${one.kind}`}
            below={(one) => one.annotator}
          />
        ) : (
          <Text size="sm" c="dimmed">
            Nothing was flagged or skipped.
          </Text>
        )
      }
    </Loaded>
  );
}

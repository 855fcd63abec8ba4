import { Badge, Button, Text, Title } from "@mantine/core";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useMay } from "../../../api/accounts/session";
import type { Schemas } from "../../../api/client";
import { spanFlagsQuery } from "../../../api/evaluation/campaigns";
import { evaluationKeys } from "../../../api/evaluation/evaluations";
import { removeSpanFlag } from "../../../api/evaluation/ranking";
import { Failure, Loaded } from "../../../shared/Feedback";
import { count } from "../../../shared/format/format";
import { More } from "../../../shared/More";
import { DataTable, type Column } from "../../../shared/tables/DataTable";
import { When } from "../../../shared/When";

type Count = Schemas["SpanCount"];
type Flag = Schemas["SpanFlagRow"];

interface Properties {
  project: string;
  evaluation: string;
  campaign: string;
  counts: Count[];
}

/** Passages of answers that annotators flagged: how many by label and entrant, and each of them. */
export function SpanFlags({ project, evaluation, campaign, counts }: Properties) {
  return (
    <>
      <Title order={2} size="h4">
        Flagged passages
      </Title>
      <Counts rows={counts} />
      {counts.some((one) => one.spans > 0) && (
        <List project={project} evaluation={evaluation} campaign={campaign} />
      )}
    </>
  );
}

function Counts({ rows }: { rows: Count[] }) {
  const entrants = Object.keys(rows[0]?.by_entrant ?? {});
  const columns: Column<Count>[] = [
    { title: "Label", cell: (one) => one.label },
    { title: "Passages", right: true, cell: (one) => count(one.spans) },
    { title: "Prompts", right: true, cell: (one) => count(one.items) },
    ...entrants.map((name): Column<Count> => ({
      title: name,
      right: true,
      wide: true,
      cell: (one) => count(one.by_entrant[name] ?? 0),
    })),
  ];
  return (
    <DataTable
      label="Flagged passages by label"
      rows={rows}
      columns={columns}
      keyOf={(one) => one.label}
      below={(one) => entrants.map((name) => `${name} ${count(one.by_entrant[name] ?? 0)}`).join(", ")}
    />
  );
}

function List({ project, evaluation, campaign }: Omit<Properties, "counts">) {
  const client = useQueryClient();
  const mayReview = useMay(project, "review");
  const query = useInfiniteQuery(spanFlagsQuery(project, evaluation, campaign));
  const remove = useMutation({
    mutationFn: (span: string) => removeSpanFlag(project, span),
    onSuccess: () => client.invalidateQueries({ queryKey: evaluationKeys.all(project) }),
  });
  const columns: Column<Flag>[] = [
    { title: "Prompt", cell: (one) => `${one.position + 1} (${one.question_id})` },
    {
      title: "Label",
      cell: (one) => (
        <Badge color="orange" variant="light" className="state-badge">
          {one.label}
        </Badge>
      ),
    },
    {
      title: "Passage",
      cell: (one) => (
        <Text size="sm" lineClamp={3} style={{ overflowWrap: "anywhere" }}>
          <mark className="flagged">{one.text}</mark>
          {one.note && ` ${one.note}`}
        </Text>
      ),
    },
    { title: "Answer of", wide: true, cell: (one) => one.entrant },
    { title: "Who", wide: true, cell: (one) => one.annotator },
    { title: "When", wide: true, cell: (one) => <When at={one.at} /> },
  ];
  if (mayReview) {
    columns.push({
      title: "Remove",
      right: true,
      cell: (one) => (
        <Button
          size="compact-xs"
          variant="subtle"
          color="red"
          loading={remove.isPending && remove.variables === one.id}
          aria-label={`Remove the flag ${one.label} of “${one.text.slice(0, 60)}”`}
          onClick={() => remove.mutate(one.id)}
        >
          Remove
        </Button>
      ),
    });
  }
  return (
    <Loaded query={query} rows={3}>
      {({ pages }) => (
        <div>
          {remove.error && <Failure error={remove.error} />}
          <DataTable
            label="Flagged passages, the newest first"
            rows={pages.flatMap((page) => page.items)}
            columns={columns}
            keyOf={(one) => one.id}
            below={(one) => `${one.entrant}, by ${one.annotator}`}
          />
          <More query={query} />
        </div>
      )}
    </Loaded>
  );
}

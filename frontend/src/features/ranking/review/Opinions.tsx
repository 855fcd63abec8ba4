import { Button, Text } from "@mantine/core";
import type { Opinion, Review, ReviewItem } from "../../../api/evaluation/review";
import { DataTable, type Column } from "../../../shared/tables/DataTable";
import { replyInWords } from "../../../shared/campaigns/questionKinds";
import { differences } from "../../../shared/text/difference";
import { Marked } from "../../../shared/text/Marked";
import { quoteOf } from "../spans/passages";
import { inWords } from "../tasks/ranks";

interface Properties {
  task: Review["task_type"];
  item: ReviewItem;
  onTake?: (opinion: Opinion) => void;
  pending?: boolean;
}

/** What each annotator submitted for an item, and the decision where there is one. */
export function Opinions({ task, item, onTake, pending }: Properties) {
  const rows = item.decision ? [...item.annotators, item.decision] : item.annotators;
  const columns: Column<Opinion>[] = [
    {
      title: "Who",
      cell: (one) =>
        one === item.decision ? (
          <>
            {one.by}{" "}
            <Text span size="xs" c="dimmed">
              decided
            </Text>
          </>
        ) : (
          one.by
        ),
    },
    {
      title: "What",
      cell: (one) => (
        <>
          <OpinionText task={task} opinion={one} item={item} />
          {Object.entries(one.replies ?? {}).map(([label, reply]) => (
            <Text key={label} size="sm" style={{ overflowWrap: "anywhere" }}>
              <Text span inherit c="dimmed">
                {label}
              </Text>{" "}
              {replyInWords(reply)}
            </Text>
          ))}
        </>
      ),
    },
    {
      title: "Comment",
      wide: true,
      cell: (one) => (
        <Text size="sm" style={{ overflowWrap: "anywhere" }}>
          {[one.comment, one.flag && `flag: ${one.flag}`, ...spansInWords(one, item)]
            .filter(Boolean)
            .join("; ") || "–"}
        </Text>
      ),
    },
  ];
  if (onTake) {
    columns.push({
      title: "Decision",
      right: true,
      cell: (one) =>
        one !== item.decision && (
          <Button size="compact-xs" variant="light" loading={pending} onClick={() => onTake(one)}>
            Take {one.by}&apos;s
          </Button>
        ),
    });
  }
  return <DataTable label="Opinions" rows={rows} columns={columns} keyOf={(one) => `${one.by} ${one.at}`} />;
}

function spansInWords(opinion: Opinion, item: ReviewItem): string[] {
  return (opinion.spans ?? []).map(
    (span) =>
      `${span.label} in ${span.key}: “${quoteOf(item.answers, span)}”${span.note ? ` (${span.note})` : ""}`,
  );
}

function OpinionText({
  task,
  opinion,
  item,
}: {
  task: Review["task_type"];
  opinion: Opinion;
  item: ReviewItem;
}) {
  const keys = item.answers.map(({ key }) => key);
  if (opinion.correction !== null) {
    const original = item.answers[0]!.turns.at(-1)!;
    if (opinion.correction === original) return <Text size="sm">Accepted as it is</Text>;
    return (
      <pre className="text rank-opinion">
        <Marked parts={differences(original, opinion.correction)[1]} mark="own-chosen" />
      </pre>
    );
  }
  if (task === "likert") {
    const lines = Object.entries(opinion.scores).map(
      ([name, scores]) => `${name}: ${keys.map((key) => `${key} ${scores[key]}`).join(", ")}`,
    );
    return <Text size="sm">{lines.join("; ")}</Text>;
  }
  if (opinion.both_bad) return <Text size="sm">Both are bad</Text>;
  const lines = Object.entries(opinion.criteria_ranks).map(
    ([name, ranks]) => `${name}: ${inWords(keys, ranks)}`,
  );
  if (opinion.ranks) lines.unshift(inWords(keys, opinion.ranks));
  return <Text size="sm">{lines.join("; ")}</Text>;
}

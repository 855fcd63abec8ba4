import { Alert, List } from "@mantine/core";
import type { Schemas } from "../../../api/client";
import { count } from "../../../shared/format/format";

const SHOWN = 20;

/** Rows of a file that were left out, by line and reason. */
export function LeftOutRows({
  unmatched,
  unmatchedRows,
  skipped,
  skippedRows,
}: {
  unmatched: Schemas["Unmatched"][];
  unmatchedRows: number;
  skipped: Schemas["BadRowReport"][];
  skippedRows: number;
}) {
  const lines = [
    ...unmatched.map((one) => ({
      line: one.line,
      text: [one.reason, one.model, one.question_id && `question ${one.question_id}`]
        .filter(Boolean)
        .join(", "),
    })),
    ...skipped.map((one) => ({ line: one.line, text: one.reason })),
  ];
  if (!lines.length) return null;
  const all = unmatchedRows + skippedRows;
  return (
    <Alert color="orange" variant="light" title={`${count(all)} rows were left out`}>
      <List size="sm">
        {lines.slice(0, SHOWN).map((one) => (
          <List.Item key={`${one.line} ${one.text}`} style={{ overflowWrap: "anywhere" }}>
            line {one.line}: {one.text}
          </List.Item>
        ))}
        {all > SHOWN && <List.Item>and {count(all - Math.min(SHOWN, lines.length))} more</List.Item>}
      </List>
    </Alert>
  );
}

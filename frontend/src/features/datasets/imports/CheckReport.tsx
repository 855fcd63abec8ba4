import { Anchor, Badge, Card, Code, Group, Stack, Table, Text, Title } from "@mantine/core";
import type { Import } from "../../../api/datasets/imports";
import { count, counted } from "../../../shared/format/format";

/** What happened to every row that was read. */
export function CheckReport({
  project,
  found,
  report,
}: {
  project: string;
  found: Import;
  report: NonNullable<Import["report"]>;
}) {
  const cleaned = Object.entries(report.cleaned).filter(([, rows]) => rows > 0);
  const address = (format: string) =>
    `/api/v1/projects/${project}/imports/${found.id}/report?format=${format}`;
  return (
    <Card withBorder>
      <Stack gap="sm">
        <Title order={2} size="h6">
          {counted(report.read, "row")} read, {count(report.rows)} of them valid
        </Title>
        <Group gap="xs">
          {cleaned.map(([rule, rows]) => (
            <Badge key={rule} color="gray">
              {rule.replaceAll("_", " ")}: {count(rows)} dropped
            </Badge>
          ))}
          {Object.entries(report.bad_counts).map(([code, rows]) => (
            <Badge key={code} className="state-badge" color="red">
              {code.replaceAll("_", " ")}: {count(rows)}
            </Badge>
          ))}
        </Group>
        <Text size="sm" c="dimmed">
          {Object.entries(report.columns).map(([field, column], at) => (
            <span key={field}>
              {at > 0 && ", "}
              {field} from <Code>{column}</Code>
            </span>
          ))}
        </Text>
        {report.bad_rows > 0 && (
          <>
            <Group justify="space-between">
              <Text size="sm" fw={600}>
                {count(report.bad_rows)} rows are not valid
                {report.bad.length < report.bad_rows && `; the first ${count(report.bad.length)}:`}
              </Text>
              <Group gap="sm">
                <Anchor size="sm" href={address("csv")} download>
                  All of them as csv
                </Anchor>
                <Anchor size="sm" href={address("json")} download>
                  json
                </Anchor>
              </Group>
            </Group>
            <Table.ScrollContainer minWidth={280} mah={420}>
              <Table aria-label="Rows that are not valid" stickyHeader>
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th ta="right">Line</Table.Th>
                    <Table.Th visibleFrom="sm">Code</Table.Th>
                    <Table.Th>Reason</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {report.bad.map((bad, at) => (
                    <Table.Tr key={at}>
                      <Table.Td ta="right">{count(bad.line)}</Table.Td>
                      <Table.Td visibleFrom="sm">
                        <Code>{bad.code}</Code>
                      </Table.Td>
                      <Table.Td style={{ overflowWrap: "anywhere" }}>
                        {bad.file ? `${bad.file}: ` : ""}
                        {bad.reason}
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </Table.ScrollContainer>
          </>
        )}
      </Stack>
    </Card>
  );
}

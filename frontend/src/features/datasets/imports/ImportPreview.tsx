import { Alert, Badge, Card, Group, Stack, Text, Title } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type Import, previewQuery } from "../../../api/datasets/imports";
import { Loaded } from "../../../shared/Feedback";
import { count } from "../../../shared/format/format";
import { AnswerBody } from "../../../shared/text/AnswerBody";
import { isAnswer } from "../../../shared/text/answers";
import { Turns } from "../../../shared/text/Turns";

/** The first rows as they would be stored; while the columns do not fit, their raw content. */
export function ImportPreview({ project, found }: { project: string; found: Import }) {
  return found.problem ? <Columns columns={found.columns} /> : <Rows project={project} found={found} />;
}

function Columns({ columns }: { columns: Import["columns"] }) {
  return (
    <Card withBorder>
      <Title order={2} size="h6" mb="xs">
        Columns of the file
      </Title>
      <Stack gap="xs" className="preview" tabIndex={0} role="group" aria-label="Columns">
        {columns.map((column) => (
          <div key={column.name}>
            <Text size="sm" fw={550} style={{ overflowWrap: "anywhere" }}>
              {column.name} · {column.types.join(" or ")}
            </Text>
            {column.examples.map((example, at) => (
              <Text key={at} size="sm" c="dimmed" lineClamp={1} style={{ overflowWrap: "anywhere" }}>
                {example}
              </Text>
            ))}
          </div>
        ))}
      </Stack>
    </Card>
  );
}

function Rows({ project, found }: { project: string; found: Import }) {
  const query = useQuery({
    ...previewQuery(project, found.id, JSON.stringify(found.options)),
    placeholderData: keepPreviousData,
    retry: false,
  });
  return (
    <Card withBorder>
      <Title order={2} size="h6" mb="xs">
        The first rows, as they would be stored
      </Title>
      <Loaded query={query} rows={4}>
        {(preview) => (
          <div className="preview" tabIndex={0} role="group" aria-label="Preview">
            {preview.rows.map((row, at) => (
              <Card key={at} withBorder p="sm" mb="xs">
                <Group justify="space-between" mb={4}>
                  <Text size="xs" c="dimmed">
                    {preview.unit} {count(row.line)}
                  </Text>
                  {row.dropped && (
                    <Badge className="state-badge" color="orange">
                      dropped: {row.dropped.replaceAll("_", " ")}
                    </Badge>
                  )}
                </Group>
                {row.problem ? (
                  <Alert color="red" p="xs" title={row.problem.code.replaceAll("_", " ")}>
                    {row.problem.reason}
                  </Alert>
                ) : (
                  <SampleText sample={(row.sample ?? {}) as Record<string, unknown>} />
                )}
              </Card>
            ))}
          </div>
        )}
      </Loaded>
    </Card>
  );
}

function SampleText({ sample }: { sample: Record<string, unknown> }) {
  const { prompt, ...rest } = sample;
  return (
    <Stack gap={6}>
      {Array.isArray(prompt) && <Turns turns={prompt as { role: string; content: string }[]} />}
      {Object.entries(rest).map(([name, value]) => (
        <div key={name}>
          <Text size="xs" c="dimmed">
            {name}
          </Text>
          {isAnswer(value) ? (
            <AnswerBody answer={value} />
          ) : (
            <pre className="text">{JSON.stringify(value)}</pre>
          )}
        </div>
      ))}
    </Stack>
  );
}

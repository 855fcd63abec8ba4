import { ActionIcon, Box, Card, Code, Group, SegmentedControl, Text, Title, Tooltip } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { snippetQuery, type SnippetFor } from "../../api/models/snippets";
import { Loaded } from "../../shared/Feedback";

const WHERE: { value: SnippetFor; label: string }[] = [
  { value: "transformers", label: "transformers" },
  { value: "vllm", label: "vLLM" },
  { value: "openai", label: "OpenAI" },
  { value: "ollama", label: "Ollama" },
];

/** Code that asks the model outside of the platform. */
export function UseElsewhere({ project, model }: { project: string; model: string }) {
  const [where, setWhere] = useState<SnippetFor>("transformers");
  const query = useQuery(snippetQuery(project, model, where));
  const clipboard = useClipboard();
  return (
    <section>
      <Group justify="space-between" mb="sm">
        <Title order={2} size="h4">
          Use it elsewhere
        </Title>
        <SegmentedControl
          size="xs"
          aria-label="Library"
          data={WHERE}
          value={where}
          onChange={(value) => setWhere(value as SnippetFor)}
        />
      </Group>
      <Loaded query={query} rows={6}>
        {({ text, needs }) => (
          <Card withBorder p="xs">
            <Group justify="space-between" wrap="nowrap" mb={4}>
              <Text size="xs" c="dimmed">
                Needs {needs.join(", ")}.
                {where !== "openai" && " Export the model first, as its comments say."}
              </Text>
              <Tooltip label={clipboard.copied ? "Copied" : "Copy"}>
                <ActionIcon
                  variant="subtle"
                  color="gray"
                  aria-label="Copy the code"
                  onClick={() => clipboard.copy(text)}
                >
                  {clipboard.copied ? <IconCheck size={16} /> : <IconCopy size={16} />}
                </ActionIcon>
              </Tooltip>
            </Group>
            <Box tabIndex={0} role="group" aria-label="Code" style={{ overflowX: "auto" }}>
              <Code block>{text}</Code>
            </Box>
          </Card>
        )}
      </Loaded>
    </section>
  );
}

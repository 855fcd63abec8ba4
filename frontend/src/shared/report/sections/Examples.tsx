import { Card, Group, Pagination, SimpleGrid, Text } from "@mantine/core";
import { useState } from "react";
import type { Schemas } from "../../../api/client";
import { Asked } from "../../AttributeBadges";
import type { Condition } from "../../forms/condition";
import { signed } from "../../format/format";
import { AnswerText } from "../../text/AnswerText";
import { TextViewSwitch } from "../../text/markdown/TextViewSwitch";

interface Answer {
  name?: string;
  entrant?: string;
  method?: string;
  score?: Condition | null;
  text?: string;
  response?: string;
  reward?: number;
}

/** The same prompt answered by every entrant, side by side, as in the paper's Table 1. */
export function Examples({ examples }: { examples: Schemas["Example"][] }) {
  const [page, setPage] = useState(1);
  const example = examples[page - 1];
  if (!example) return null;
  return (
    <div>
      <Group justify="space-between" align="flex-start" mb="sm">
        <Text fw={600} flex="1 1 20rem">
          {example.prompt}
        </Text>
        <TextViewSwitch />
        <Pagination
          size="sm"
          total={examples.length}
          value={page}
          onChange={setPage}
          getControlProps={(control) => ({ "aria-label": `${control} example` })}
        />
      </Group>
      <SimpleGrid cols={{ base: 1, sm: 2, xl: 4 }}>
        {(example.answers as Answer[]).map((answer, at) => (
          <Card withBorder p="sm" key={at}>
            <Group justify="space-between" mb={6} wrap="nowrap">
              <Text size="sm" c="dimmed" truncate>
                {answer.name ?? answer.entrant ?? answer.method}
              </Text>
            </Group>
            <Asked condition={answer.score} />
            <AnswerText text={answer.text ?? answer.response ?? ""} />
            {answer.reward !== undefined && (
              <Text size="xs" c="dimmed" mt={6}>
                reward {signed(answer.reward)} z
              </Text>
            )}
          </Card>
        ))}
      </SimpleGrid>
    </div>
  );
}

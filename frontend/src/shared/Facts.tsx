import { SimpleGrid, Text } from "@mantine/core";
import type { ReactNode } from "react";

export type Fact = [name: string, figure: ReactNode, about?: string];

/** Small figures side by side, each with what it means; `columns` of them on a wide screen. */
export function Facts({ facts, columns = 4 }: { facts: Fact[]; columns?: number }) {
  return (
    <SimpleGrid cols={{ base: 2, xs: 3, lg: columns }} spacing="sm">
      {facts.map(([name, figure, about]) => (
        <div key={name}>
          <Text size="xs" c="dimmed">
            {name}
          </Text>
          <Text component="div" size="sm" fw={600} style={{ overflowWrap: "anywhere" }}>
            {figure}
          </Text>
          {about && (
            <Text size="xs" c="dimmed">
              {about}
            </Text>
          )}
        </div>
      ))}
    </SimpleGrid>
  );
}

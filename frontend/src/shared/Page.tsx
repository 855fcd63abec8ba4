import { Group, Stack, Text, Title } from "@mantine/core";
import { useDocumentTitle } from "@mantine/hooks";
import type { ReactNode } from "react";

interface Properties {
  title: string;
  /** The browser tab's title, if it differs from the heading. */
  tab?: string;
  beside?: ReactNode;
  actions?: ReactNode;
  about?: ReactNode;
  children: ReactNode;
}

export function Page({ title, tab, beside, actions, about, children }: Properties) {
  useDocumentTitle(`${tab ?? title} · Steerboard`);
  return (
    <Stack gap="lg">
      <Group justify="space-between" align="flex-start" gap="sm">
        <Stack gap={2} style={{ minWidth: 0 }}>
          <Group gap="sm">
            <Title order={1} size="h2" style={{ overflowWrap: "anywhere" }}>
              {title}
            </Title>
            {beside}
          </Group>
          {about && (
            <Text c="dimmed" size="sm" component="div">
              {about}
            </Text>
          )}
        </Stack>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </Stack>
  );
}

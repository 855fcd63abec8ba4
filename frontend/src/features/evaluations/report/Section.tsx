import { Alert, Badge, Card, Group, List, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";

/** A source's part of the report. */
export function Section({
  title,
  badge,
  about,
  children,
}: {
  title: string;
  badge?: { text: string; color: string };
  about?: ReactNode;
  children: ReactNode;
}) {
  return (
    <Card withBorder component="section" aria-label={title}>
      <Stack>
        <div>
          <Group gap="sm">
            <Title order={3} size="h5">
              {title}
            </Title>
            {badge && (
              <Badge color={badge.color} className="state-badge">
                {badge.text}
              </Badge>
            )}
          </Group>
          {about && (
            <Text size="sm" c="dimmed">
              {about}
            </Text>
          )}
        </div>
        {children}
      </Stack>
    </Card>
  );
}

export function Warnings({ warnings, title = "Caveats" }: { warnings: string[]; title?: string }) {
  if (!warnings.length) return null;
  return (
    <Alert color="orange" variant="light" title={title}>
      <List size="sm" spacing={4}>
        {warnings.map((warning) => (
          <List.Item key={warning}>{warning}</List.Item>
        ))}
      </List>
    </Alert>
  );
}

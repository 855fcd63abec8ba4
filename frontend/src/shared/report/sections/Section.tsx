import { Alert, Badge, Card, Group, List, Stack, Text, Title } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { useState, type ReactNode } from "react";
import "./report.css";

interface Properties {
  title: string;
  /** What it comes to, to be read without opening it. */
  headline?: ReactNode;
  badge?: { text: string; color: string };
  about?: ReactNode;
  opened?: boolean;
  children: ReactNode;
}

/** A part of the report, folded. What is inside is drawn when it is opened. */
export function Section({ title, headline, badge, about, opened = false, children }: Properties) {
  const [open, setOpen] = useState(opened);
  return (
    <Card withBorder component="section" aria-label={title} padding="sm">
      <details
        className="report-fold"
        open={open}
        onToggle={(event) => {
          // Sections inside of it report themselves.
          if (event.target === event.currentTarget) setOpen(event.currentTarget.open);
        }}
      >
        <summary>
          <div>
            <Group gap="sm">
              <Title order={3} size="h5" style={{ overflowWrap: "anywhere" }}>
                {title}
              </Title>
              {badge && (
                <Badge color={badge.color} className="state-badge">
                  {badge.text}
                </Badge>
              )}
            </Group>
            {headline && (
              <Text size="sm" style={{ overflowWrap: "anywhere" }}>
                {headline}
              </Text>
            )}
          </div>
        </summary>
        {open && (
          <Stack mt="sm">
            {about && (
              <Text size="sm" c="dimmed">
                {about}
              </Text>
            )}
            {children}
          </Stack>
        )}
      </details>
    </Card>
  );
}

export function Warnings({ warnings, title = "Caveats" }: { warnings: string[]; title?: string }) {
  if (!warnings.length) return null;
  return (
    <Alert
      color="gray"
      variant="light"
      title={title}
      icon={<IconAlertTriangle aria-hidden />}
      styles={{ icon: { color: "var(--mantine-color-orange-text)" } }}
    >
      <List size="sm" spacing={4}>
        {warnings.map((warning) => (
          <List.Item key={warning}>{warning}</List.Item>
        ))}
      </List>
    </Alert>
  );
}

import { Button, FileButton, Group, Progress, Text, Title } from "@mantine/core";
import { IconFileUpload } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { count } from "../../shared/format/format";

/** A section of a tab: what it is, why, and what can be done there. */
export function Section({
  title,
  about,
  actions,
  children,
}: {
  title: string;
  about?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section>
      <Group justify="space-between" align="flex-start" mb="sm" gap="sm">
        <div style={{ maxWidth: 720 }}>
          <Title order={2} size="h4">
            {title}
          </Title>
          {about && (
            <Text size="sm" c="dimmed" component="div">
              {about}
            </Text>
          )}
        </div>
        {actions && <Group gap="xs">{actions}</Group>}
      </Group>
      {children}
    </section>
  );
}

/** How much of something is there. */
export function Share({ of, done, total, unit }: { of: string; done: number; total: number; unit: string }) {
  const text = `${count(done)} of ${count(total)} ${unit}`;
  return (
    <div style={{ minWidth: 110 }}>
      <Progress value={total ? (100 * done) / total : 0} mb={2} aria-label={`${of}: ${text}`} />
      <Text size="xs" c="dimmed">
        {text}
      </Text>
    </div>
  );
}

/** Chooses one file, which is named next to the button. */
export function FileChoice({
  label,
  accept,
  file,
  onFile,
}: {
  label: string;
  accept: string;
  file: File | null;
  onFile: (file: File | null) => void;
}) {
  return (
    <Group gap="sm">
      <FileButton onChange={onFile} accept={accept} inputProps={{ "aria-label": label }}>
        {(properties) => (
          <Button variant="default" leftSection={<IconFileUpload size={16} />} {...properties}>
            {file ? "Choose another file" : label}
          </Button>
        )}
      </FileButton>
      <Text size="sm" c={file ? undefined : "dimmed"} style={{ overflowWrap: "anywhere" }}>
        {file ? file.name : "none chosen"}
      </Text>
    </Group>
  );
}

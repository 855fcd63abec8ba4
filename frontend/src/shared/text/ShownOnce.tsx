import { Alert, Button, CopyButton, Group, Stack, Text, TextInput } from "@mantine/core";
import type { ReactNode } from "react";

/** A secret that is shown only once: to copy now. A dialog around it does not close by a click outside of it. */
export function ShownOnce({
  label,
  secret,
  children,
  onDone,
}: {
  label: string;
  secret: string;
  children?: ReactNode;
  onDone: () => void;
}) {
  return (
    <Stack>
      <Alert color="yellow" variant="light" title="Copy it now">
        <Text size="sm">It is shown only once. No one can read it again, not even an owner.</Text>
      </Alert>
      <Group align="flex-end" gap="xs" wrap="nowrap">
        <TextInput
          label={label}
          readOnly
          value={secret}
          flex={1}
          onFocus={(event) => event.currentTarget.select()}
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
        />
        <CopyButton value={secret} timeout={3000}>
          {({ copied, copy }) => (
            <Button variant="default" onClick={copy} miw={90}>
              {copied ? "Copied" : "Copy"}
            </Button>
          )}
        </CopyButton>
      </Group>
      {children}
      <Group justify="flex-end">
        <Button onClick={onDone}>Done</Button>
      </Group>
    </Stack>
  );
}

import { Alert, Anchor, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";

/** A report about a whole pipeline: its verdict in a sentence, how that was found, the figures, and its caveats. */
export function Findings({
  project,
  pipeline,
  what,
  verdict,
  about,
  notes,
  children,
}: {
  project: string;
  pipeline: string;
  /** The last part of its address in the API. */
  what: "rounds" | "sweep";
  verdict: string;
  about: string;
  notes?: string[];
  children: ReactNode;
}) {
  return (
    <Stack gap="lg">
      <div>
        <Text fw={600} size="lg" style={{ textWrap: "pretty", overflowWrap: "anywhere" }}>
          {verdict}
        </Text>
        <Text size="sm" c="dimmed" style={{ overflowWrap: "anywhere" }}>
          {about}
        </Text>
      </div>
      {children}
      {!!notes?.length && (
        <Alert color="orange" variant="light" title="Caveats">
          {notes.map((note) => (
            <Text key={note} size="sm">
              {note}
            </Text>
          ))}
        </Alert>
      )}
      <Anchor
        size="sm"
        href={`/api/v1/projects/${project}/pipelines/${pipeline}/${what}`}
        download={`${what}.json`}
      >
        The {what} as JSON
      </Anchor>
    </Stack>
  );
}

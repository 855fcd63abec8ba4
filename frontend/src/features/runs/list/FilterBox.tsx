import { Button, CloseButton, Code, Group, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useState } from "react";
import { Problem } from "../../../api/client";
import { WithCode } from "../../../shared/text/WithCode";
import { mistakeOf, replaced } from "./mistake";
import { FilterHelp } from "./FilterHelp";

const DEBOUNCE_MS = 500;

interface Properties {
  project: string;
  filter: string;
  /** Why the list could not be filtered so. */
  error: Error | null;
  onFilter: (filter: string) => void;
}

/** Where runs are searched and filtered; a mistake is shown in its place, with what to write instead. */
export function FilterBox({ project, filter, error, onFilter }: Properties) {
  const [typed, setTyped] = useState(filter);
  const [known, setKnown] = useState(filter);
  // The address changed by something else than this field: a view, the way back.
  if (filter !== known) {
    setKnown(filter);
    setTyped(filter);
  }
  const commit = (text: string) => {
    setKnown(text);
    onFilter(text);
  };
  const later = useDebouncedCallback(commit, DEBOUNCE_MS);
  const write = (text: string) => {
    setTyped(text);
    commit(text);
  };
  const mistake = error instanceof Problem && error.code === "bad_filter" ? mistakeOf(error, filter) : null;
  return (
    <Stack gap={6}>
      <Group gap="xs" align="flex-end" wrap="nowrap">
        <TextInput
          style={{ flex: 1 }}
          label="Search or filter"
          placeholder="judge eval_loss < 1.2 tag:good state:failed"
          leftSection={<IconSearch size={16} />}
          rightSection={
            typed && <CloseButton size="sm" aria-label="Clear the filter" onClick={() => write("")} />
          }
          value={typed}
          error={!!mistake}
          aria-describedby={mistake ? "filter-mistake" : undefined}
          spellCheck={false}
          autoComplete="off"
          onChange={(event) => {
            setTyped(event.currentTarget.value);
            later(event.currentTarget.value.trim());
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter") commit(typed.trim());
          }}
        />
        <FilterHelp project={project} onAdd={(field) => setTyped(`${typed.trim()} ${field} `.trimStart())} />
      </Group>
      {mistake && (
        <Stack gap={4} id="filter-mistake" role="alert">
          <pre className="filter-mistake">
            {mistake.before}
            <mark>{mistake.wrong || " "}</mark>
            {mistake.after}
          </pre>
          <Text size="sm">
            <WithCode text={error!.message} />
          </Text>
          {(error as Problem).hint && (
            <Text size="sm" c="dimmed">
              <WithCode text={(error as Problem).hint!} />
            </Text>
          )}
          <Group gap="xs">
            {mistake.suggestions.map((one) => (
              <Button
                key={one}
                size="compact-sm"
                variant="default"
                tt="none"
                onClick={() => write(replaced(mistake, one))}
              >
                Use <Code ml={4}>{one}</Code>
              </Button>
            ))}
          </Group>
        </Stack>
      )}
    </Stack>
  );
}

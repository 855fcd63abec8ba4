import { ActionIcon, Button, Paper, SegmentedControl, Stack, Text, Textarea, Tooltip } from "@mantine/core";
import {
  IconArrowBackUp,
  IconFlagFilled,
  IconHelp,
  IconMessage,
  IconMessageFilled,
  IconPlayerSkipForward,
} from "@tabler/icons-react";
import type { KeyboardEvent, ReactNode } from "react";
import type { Work } from "./work/work";

interface Properties {
  strip: ReactNode;
  /** None where there is one ranking only. */
  criteria: { name: string; description: string; done: boolean }[];
  at: number;
  onAt: (at: number) => void;
  said: string;
  ready: boolean;
  onSubmit: () => void;
  onUndo: () => void;
  mayUndo: boolean;
  onSkip: () => void;
  onHelp: () => void;
  noting: boolean;
  onNote: () => void;
  work: Work;
  onChange: (next: Partial<Work>) => void;
}

/** Stays in sight below the answers: the order, what can be done, and the notes. */
export function RankBar(properties: Properties) {
  const { strip, criteria, at, onAt, said, ready, noting, work, onChange } = properties;
  const submitFromField = (event: KeyboardEvent) => {
    if (event.key === "Escape") (event.target as HTMLElement).blur();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) properties.onSubmit();
  };
  return (
    <Paper withBorder p="xs" className="rank-bar" component="section" aria-label="Your ranking">
      {criteria.length > 0 && (
        <Stack gap={2} mb="xs">
          <SegmentedControl
            size="xs"
            aria-label="Criterion"
            value={String(at)}
            onChange={(value) => onAt(Number(value))}
            data={criteria.map(({ name, done }, place) => ({
              value: String(place),
              label: done ? `${name} ✓` : name,
            }))}
          />
          {criteria[at]!.description && (
            <Text size="xs" c="dimmed">
              {criteria[at]!.description}
            </Text>
          )}
        </Stack>
      )}
      <div className="rank-deck">
        {strip}
        <div className="rank-actions">
          <Tool
            label="Undo the last one (U)"
            icon={IconArrowBackUp}
            onClick={properties.onUndo}
            off={!properties.mayUndo}
          />
          <Tool label="Skip (S)" icon={IconPlayerSkipForward} onClick={properties.onSkip} />
          <Tool
            label="Comment or flag (M)"
            icon={work.flag ? IconFlagFilled : work.comment ? IconMessageFilled : IconMessage}
            onClick={properties.onNote}
          />
          <Tool label="Keys and instructions (?)" icon={IconHelp} onClick={properties.onHelp} />
          <Button
            className="rank-submit"
            data-ready={ready || undefined}
            aria-disabled={!ready}
            variant={ready ? "filled" : "default"}
            onMouseDown={(event) => event.preventDefault()}
            onClick={properties.onSubmit}
          >
            {said}
          </Button>
        </div>
      </div>
      {noting && (
        <div className="rank-notes">
          <Textarea
            id="rank-comment"
            label="Comment"
            autosize
            minRows={1}
            maxRows={4}
            maxLength={10_000}
            value={work.comment}
            onKeyDown={submitFromField}
            onChange={(event) => onChange({ comment: event.currentTarget.value })}
          />
          <Textarea
            label="Flag: what is wrong with this item?"
            autosize
            minRows={1}
            maxRows={4}
            maxLength={2_000}
            value={work.flag}
            onKeyDown={submitFromField}
            onChange={(event) => onChange({ flag: event.currentTarget.value })}
          />
        </div>
      )}
    </Paper>
  );
}

interface ToolProperties {
  label: string;
  icon: typeof IconHelp;
  onClick: () => void;
  off?: boolean;
}

function Tool({ label, icon: Icon, onClick, off }: ToolProperties) {
  return (
    <Tooltip label={label} events={{ hover: true, focus: true, touch: false }}>
      <ActionIcon
        variant="default"
        size={36}
        aria-label={label}
        onMouseDown={(event) => event.preventDefault()}
        onClick={onClick}
        disabled={off}
      >
        <Icon size={18} />
      </ActionIcon>
    </Tooltip>
  );
}

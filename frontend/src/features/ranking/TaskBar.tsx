import { ActionIcon, Button, Paper, Textarea, Tooltip } from "@mantine/core";
import {
  IconArrowBackUp,
  IconFlagFilled,
  IconHelp,
  IconHighlight,
  IconMessage,
  IconMessageFilled,
  IconPlayerSkipForward,
} from "@tabler/icons-react";
import type { KeyboardEvent, ReactNode } from "react";
import type { Work } from "./work/work";

interface Properties {
  /** The bar's name for assistive technology. */
  label: string;
  above?: ReactNode;
  /** What the task itself is done with. */
  deck: ReactNode;
  /** None where the deck submits. */
  submit?: { label: string; ready: boolean };
  onSubmit: () => void;
  onUndo?: () => void;
  mayUndo: boolean;
  onSkip?: () => void;
  /** None where no passages are flagged. */
  onPassage?: () => void;
  onHelp: () => void;
  noting: boolean;
  onNote: () => void;
  work: Work;
  onChange: (next: Partial<Work>) => void;
}

/** Stays in sight below the answers: the task's own buttons, what else can be done, and the notes. */
export function TaskBar(properties: Properties) {
  const { submit, noting, work, onChange } = properties;
  const submitFromField = (event: KeyboardEvent) => {
    if (event.key === "Escape") (event.target as HTMLElement).blur();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) properties.onSubmit();
  };
  return (
    <Paper withBorder p="xs" className="rank-bar" component="section" aria-label={properties.label}>
      {properties.above}
      <div className="rank-deck">
        {properties.deck}
        <div className="rank-actions">
          {properties.onUndo && (
            <Tool
              label="Undo the last one (U)"
              icon={IconArrowBackUp}
              onClick={properties.onUndo}
              off={!properties.mayUndo}
            />
          )}
          {properties.onSkip && (
            <Tool label="Skip (S)" icon={IconPlayerSkipForward} onClick={properties.onSkip} />
          )}
          {properties.onPassage && (
            <Tool label="Flag a passage (P)" icon={IconHighlight} onClick={properties.onPassage} />
          )}
          <Tool
            label="Comment or flag (M)"
            icon={work.flag ? IconFlagFilled : work.comment ? IconMessageFilled : IconMessage}
            onClick={properties.onNote}
          />
          <Tool label="Keys and instructions (?)" icon={IconHelp} onClick={properties.onHelp} />
          {submit && (
            <Button
              className="rank-submit"
              data-ready={submit.ready || undefined}
              aria-disabled={!submit.ready}
              variant={submit.ready ? "filled" : "default"}
              onMouseDown={(event) => event.preventDefault()}
              onClick={properties.onSubmit}
            >
              {submit.label}
            </Button>
          )}
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

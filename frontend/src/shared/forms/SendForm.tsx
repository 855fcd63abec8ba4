import { Button, Group, Stack } from "@mantine/core";
import type { ReactNode } from "react";
import { Failure } from "../Feedback";

interface Properties {
  send: { mutate: () => void; isPending: boolean; error: Error | null };
  /** On its button. */
  label: string;
  disabled?: boolean;
  /** Leaves the form as if nothing had been typed. */
  onLeave?: () => void;
  children: ReactNode;
}

/** Fields that are sent together, by the button or by Enter; an error appears above the button. */
export function SendForm({ send, label, disabled, onLeave, children }: Properties) {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        // A dialog's form may be inside of another one: React hands its events up all the same.
        event.stopPropagation();
        send.mutate();
      }}
    >
      <Stack>
        {children}
        {send.error && <Failure error={send.error} />}
        <Group justify="flex-end">
          {onLeave && (
            <Button variant="default" onClick={onLeave}>
              Cancel
            </Button>
          )}
          <Button type="submit" disabled={disabled} loading={send.isPending}>
            {label}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

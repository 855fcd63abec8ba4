import { Group, Stack } from "@mantine/core";
import { createContext, type ReactNode, use } from "react";
import type { Marked, Marks } from "../../api/marks";
import { Star } from "./Star";
import { Tags } from "./Tags";

interface Context {
  project: string;
  type: Marked;
  marks: Record<string, Marks>;
}

/** The marks of the things in a list; there is none outside of one. */
export const MarksContext = createContext<Context | null>(null);

/** The name of a thing in a list, with its star and its tags where the list knows them. */
export function NameCell({ item, name, children }: { item: string; name: string; children: ReactNode }) {
  const context = use(MarksContext);
  const mine = context?.marks[item];
  if (!context) return children;
  return (
    <Group gap={6} wrap="nowrap" align="flex-start">
      <Star
        project={context.project}
        type={context.type}
        item={item}
        name={name}
        on={mine?.favourite ?? false}
      />
      <Stack gap={2}>
        {children}
        <Tags tags={mine?.tags ?? []} />
      </Stack>
    </Group>
  );
}

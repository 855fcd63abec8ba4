import { Text } from "@mantine/core";
import type { Schemas } from "../../../api/client";
import { AcademicTable, DIFFERENCES } from "../Academic";
import { Section } from "./Section";

/** The academic benchmarks of each entrant's model. */
export function AcademicSection({ entrants }: { entrants: Schemas["EntrantAcademic"][] }) {
  return (
    <>
      {entrants.map((one) => (
        <Section key={one.entrant} title={one.entrant}>
          <AcademicTable rows={one.rows} label={`Academic benchmarks of ${one.entrant}`} />
        </Section>
      ))}
      <Text size="xs" c="dimmed">
        {DIFFERENCES}
      </Text>
    </>
  );
}

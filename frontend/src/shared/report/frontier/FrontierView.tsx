import { Card, Select, Stack, Table, Text } from "@mantine/core";
import { useState } from "react";
import { ItemsLink } from "../ItemsLink";
import { asPercent, Figure, plain, type Report } from "../Figure";
import { curvesOf, measuresOf, placesOf } from "./frontier";
import { FrontierChart } from "./FrontierChart";

type Frontier = NonNullable<Report["frontier"]>;

/** Reward or win rate against the KL to one model, for all entrants, with what the best of n of its answers gains. */
export function FrontierView({ report, frontier }: { report: Report; frontier: Frontier }) {
  const measures = measuresOf(report);
  const [label, setLabel] = useState<string | null>(null);
  const measure = measures.find((one) => one.label === label) ?? measures[0];
  const places = measure ? placesOf(report, measure) : [];
  const curves = measure ? curvesOf(report, measure) : [];
  const format = measure?.percent ? asPercent : plain(2);
  const values = new Map(report.methods.map((row) => [row.entrant, measure?.of(row)]));
  return (
    <Card withBorder>
      <Stack>
        {measure && measures.length > 1 && (
          <Select
            label="Measure against KL"
            maw={320}
            allowDeselect={false}
            data={measures.map((one) => one.label)}
            value={measure.label}
            onChange={setLabel}
          />
        )}
        {measure && places.length + curves.length > 0 && (
          <>
            <FrontierChart places={places} curves={curves} measure={measure} to={frontier.kl_to} />
            {curves.map((curve) => (
              <Text key={curve.label} size="sm" c="dimmed">
                Dashed: {curve.label}, chosen by this reward itself, at its highest possible KL. Points above
                the line gain more at the same distance.
                {measure?.percent &&
                  " Its win rates are n / (n + 1), which holds for answers that do not tie."}
              </Text>
            ))}
          </>
        )}
        <Table.ScrollContainer
          minWidth={480}
          scrollAreaProps={{
            viewportProps: { tabIndex: 0, role: "group", "aria-label": "KL of the entrants" },
          }}
        >
          <Table aria-label="KL of the entrants">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Entrant</Table.Th>
                <Table.Th ta="right">
                  KL to {frontier.kl_to}
                  <Text size="xs" c="dimmed" fw={400}>
                    nats per answer
                  </Text>
                </Table.Th>
                <Table.Th ta="right">{measure?.axis ?? "Reward"}</Table.Th>
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {frontier.entrants.map((one) => (
                <Table.Tr key={one.entrant}>
                  <Table.Td>
                    {one.entrant}
                    {(one.why ?? ABOUT[one.kind]) && (
                      <Text size="xs" c="dimmed">
                        {one.why ? `No estimate: ${one.why}` : ABOUT[one.kind]}
                      </Text>
                    )}
                  </Table.Td>
                  <Table.Td ta="right">
                    {one.kind === "estimate" ? (
                      <Figure of={one.kl} />
                    ) : (
                      <Text span size="sm">
                        {one.kind === "bound" ? "≤ " : ""}
                        {plain(2)(one.kl.value ?? 0)}
                      </Text>
                    )}
                  </Table.Td>
                  <Table.Td ta="right">
                    {measure ? (
                      <ItemsLink search={measure.items(one.entrant)}>
                        <Figure of={values.get(one.entrant)} format={format} />
                      </ItemsLink>
                    ) : (
                      "–"
                    )}
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
        {frontier.entrants.some((one) => one.kind === "estimate" && (one.kl.value ?? 0) < 0) && (
          <Text size="sm" c="dimmed">
            KL itself is never negative. Its estimate averages how much likelier each answer is under the
            entrant than under {frontier.kl_to}, and over few answers near 0 this average can fall below 0.
          </Text>
        )}
      </Stack>
    </Card>
  );
}

const ABOUT: Record<Frontier["entrants"][number]["kind"], string> = {
  estimate: "",
  same: "the model itself",
  bound: "the best of n of the model's answers: an upper bound",
};

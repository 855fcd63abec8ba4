import { Table, Text } from "@mantine/core";
import { count, percent, seconds, short, counted } from "../../format/format";
import { ComparisonView } from "../comparison/ComparisonView";
import { asPercent, Figure, plain, type Report } from "../Figure";
import { Facts as FactList } from "../../Facts";
import { ItemsLink, type SourceName } from "../ItemsLink";
import { Section, Warnings } from "./Section";

type Judge = Report["judges"][number];

const STYLES: Record<string, string> = {
  multi: "all answers at once, 1 to 10",
  single: "one answer at a time, 1 to 10",
  rubric: "one answer at a time, by yes or no questions; 1 to 10",
  pairwise: "two answers at a time",
  alpaca_eval: "AlpacaEval, against the baseline",
  arena_hard: "Arena-Hard, against the baseline",
  preference: "preference model, two answers at a time in both orders",
};

/** One judge: its results and its biases. */
export function JudgeSection({
  judge,
  baseline,
  headline,
  opened,
}: {
  judge: Judge;
  /** The entrant that AlpacaEval and Arena-Hard compare with. */
  baseline: string | null;
  headline?: string;
  opened?: boolean;
}) {
  const { biases } = judge;
  const scored = ["multi", "single", "rubric"].includes(judge.style);
  const source: SourceName = `judge:${judge.judge}`;
  const number = (value: number | null, digits = 2) => (value === null ? "–" : plain(digits)(value));
  const won = (entrant: string, rate: string) => (
    <ItemsLink search={{ a: entrant, b: baseline ?? undefined, source }}>{rate}</ItemsLink>
  );
  return (
    <Section
      title={judge.judge}
      headline={headline}
      opened={opened}
      badge={judge.valid ? { text: judge.state, color: "gray" } : { text: "not valid", color: "red" }}
      about={`${judge.model}; ${STYLES[judge.style] ?? judge.style}${judge.imported ? "; judged elsewhere, imported" : ""}`}
    >
      <Warnings warnings={judge.warnings} />
      <FactList
        facts={[
          ["Valid verdicts", `${count(judge.ok)} of ${count(judge.verdicts)}`],
          [
            "Unusable",
            percent(judge.unparsed_rate),
            `${count(judge.unparsed)} unparsed, ${count(judge.refused)} refused, ${counted(judge.errors, "error")}${judge.unreadable ? `, ${count(judge.unreadable)} unreadable rows` : ""}; bound ${percent(judge.unparsed_threshold, 0)}`,
          ],
          ...(judge.superseded
            ? ([["Superseded", count(judge.superseded), "a newer row of the same item counts"]] as [
                string,
                string,
                string,
              ][])
            : []),
          [
            "The first answer wins",
            <Figure key="first" of={biases.first_wins} format={asPercent} stacked={false} />,
            biases.expected_first_wins == null
              ? undefined
              : `${asPercent(biases.expected_first_wins)} without bias`,
          ],
          [
            "The longer answer wins",
            <Figure key="longer" of={biases.longer_wins} format={asPercent} stacked={false} />,
          ],
          [
            "Flips with the order",
            <ItemsLink key="flip" search={{ source, outcome: "flip" }}>
              <Figure of={biases.flip_rate} format={asPercent} stacked={false} />
            </ItemsLink>,
            judge.style === "pairwise" ? "counted as ties" : "both orders are averaged",
          ],
          ...(biases.self_preference
            ? ([
                [
                  `Prefers its family (${biases.self_preference.family})`,
                  <Figure key="self" of={biases.self_preference.own} format={asPercent} stacked={false} />,
                ],
              ] as [string, React.ReactNode][])
            : []),
          ...(judge.quality ? qualityFacts(judge.quality) : []),
          ...(judge.prompt_tokens === null
            ? []
            : ([["Tokens", `${count(judge.prompt_tokens)} in, ${count(judge.completion_tokens)} out`]] as [
                string,
                string,
              ][])),
        ]}
      />
      <ComparisonView
        comparison={judge.comparison}
        source={source}
        score={scored ? "Mean score, 1 to 10" : "Mean share of wins"}
        format={scored ? plain(2) : asPercent}
      />
      {!!judge.alpaca_eval?.length && (
        <>
          <Rows
            label="AlpacaEval"
            heads={[
              "Entrant",
              "Win rate, %",
              "Standard error",
              "Length-controlled (minimal), %",
              "Discrete, %",
              "Wins, ties, losses",
              "n",
            ]}
            rows={judge.alpaca_eval.map((row) => [
              row.entrant,
              won(row.entrant, number(row.win_rate)),
              number(row.standard_error),
              number(row.length_controlled),
              number(row.discrete_win_rate),
              `${count(row.n_wins)} / ${count(row.n_ties)} / ${count(row.n_losses)}`,
              count(row.n),
            ])}
          />
          <Text size="xs" c="dimmed">
            Length-controlled, minimal: fitted to these answers alone, without the difficulty of the
            benchmark's prompts and without its gamed baselines. It is not the rate that the benchmark
            publishes.
          </Text>
        </>
      )}
      {!!judge.arena_hard?.length && (
        <Rows
          label="Arena-Hard"
          heads={["Entrant", "Win rate, %", "95% interval", "n"]}
          rows={judge.arena_hard.map((row) => [
            row.entrant,
            won(row.entrant, number(row.win_rate, 1)),
            row.low === null ? "–" : `[${number(row.low, 1)}, ${number(row.high, 1)}]`,
            count(row.n),
          ])}
        />
      )}
      {!!judge.single?.length && <Single rows={judge.single} />}
    </Section>
  );
}

type Facts = [string, React.ReactNode, string?][];

/** How far its word counts: agreement with people, repeatability, and what a verdict takes. */
function qualityFacts(quality: NonNullable<Judge["quality"]>): Facts {
  const facts: Facts = quality.people.map((one) => [
    `Agrees with ${one.source}`,
    <Figure key={one.source} of={one.kappa} format={plain(2)} stacked={false} />,
    `Cohen's kappa; the same on ${asPercent(one.agreement.value ?? 0)} of pairs`,
  ]);
  for (const one of quality.calibrations ?? [])
    facts.push([
      `Right on ${one.dataset}`,
      <Figure key={one.evaluation} of={one.accuracy} format={asPercent} stacked={false} />,
      `of ${counted(one.pairs, "pair")} whose better side is known`,
    ]);
  if (quality.repeatability.n)
    facts.push([
      "Repeatability",
      <Figure key="repeats" of={quality.repeatability} format={asPercent} stacked={false} />,
      "same verdict when asked the same again",
    ]);
  if (quality.cost !== null && quality.cost !== undefined)
    facts.push([
      "Cost",
      short(quality.cost),
      [
        quality.cost_per_verdict == null ? "" : `${short(quality.cost_per_verdict)} per verdict`,
        quality.uncertain_cost ? `up to ${short(quality.uncertain_cost)} of it uncertain` : "",
        quality.calibration_cost ? `${short(quality.calibration_cost)} more for calibrations` : "",
      ]
        .filter(Boolean)
        .join("; "),
    ]);
  if (quality.seconds_per_verdict !== null && quality.seconds_per_verdict !== undefined)
    facts.push(["Time per verdict", seconds(quality.seconds_per_verdict), "from request to answer"]);
  return facts;
}

function Single({ rows }: { rows: NonNullable<Judge["single"]> }) {
  const categories = [...new Set(rows.flatMap((row) => Object.keys(row.by_category)))];
  const number = (value: number | null | undefined) =>
    value === null || value === undefined ? "–" : value.toFixed(2);
  return (
    <Rows
      label="Scores by turn and category"
      heads={["Entrant", "Turn 1", "Turn 2", "Average", "n", ...categories]}
      rows={rows.map((row) => [
        row.entrant,
        number(row.turn_1),
        number(row.turn_2),
        number(row.average),
        count(row.n),
        ...categories.map((category) => number(row.by_category[category])),
      ])}
    />
  );
}

function Rows({ label, heads, rows }: { label: string; heads: string[]; rows: React.ReactNode[][] }) {
  return (
    <Table.ScrollContainer minWidth={110 * heads.length}>
      <Table aria-label={label}>
        <Table.Thead>
          <Table.Tr>
            {heads.map((head, at) => (
              <Table.Th key={head} ta={at ? "right" : undefined}>
                {head}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((cells) => (
            <Table.Tr key={String(cells[0])}>
              {cells.map((cell, at) => (
                <Table.Td
                  key={heads[at]}
                  ta={at ? "right" : undefined}
                  style={{ whiteSpace: at ? "nowrap" : undefined }}
                >
                  {cell}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

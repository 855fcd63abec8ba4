import { Facts } from "../../Facts";
import { ComparisonView } from "../comparison/ComparisonView";
import { asPercent, Figure, plain, type Report } from "../Figure";
import { Section, Warnings } from "./Section";

type Jury = NonNullable<Report["juries"]>[number];

const RULES = {
  majority: "majority of the verdicts on each pair of answers",
  mean: "mean of the scores, each judge's standardised first",
};

/** Several judges as one source. */
export function JurySection({ jury, headline, opened }: { jury: Jury; headline?: string; opened?: boolean }) {
  return (
    <Section
      title={jury.jury}
      headline={headline}
      opened={opened}
      badge={jury.valid ? { text: "jury", color: "gray" } : { text: "not valid", color: "red" }}
      about={`${jury.judges.join(", ") || "no valid judge"}; ${RULES[jury.rule]}`}
    >
      <Warnings warnings={jury.warnings ?? []} />
      <Facts
        facts={[
          [
            "Agreement of its judges",
            <Figure key="alpha" of={jury.alpha} format={plain(2)} stacked={false} />,
            "Krippendorff's alpha over pairs of answers: 1 always, 0 as by chance",
          ],
          ...(jury.people ?? []).map(
            (one) =>
              [
                `Agrees with ${one.source}`,
                <Figure key={one.source} of={one.kappa} format={plain(2)} stacked={false} />,
                `Cohen's kappa; the same on ${asPercent(one.agreement.value ?? 0)} of pairs`,
              ] as [string, React.ReactNode, string],
          ),
        ]}
      />
      {jury.valid && (
        <ComparisonView
          comparison={jury.comparison}
          source={`jury:${jury.jury}`}
          score={jury.rule === "majority" ? "Mean share of wins" : "Mean standardised score"}
          format={jury.rule === "majority" ? asPercent : plain(2)}
        />
      )}
    </Section>
  );
}

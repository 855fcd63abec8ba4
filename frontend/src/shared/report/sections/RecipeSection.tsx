import { Alert, Card, List, Text, ThemeIcon, Title } from "@mantine/core";
import { IconCheck, IconX } from "@tabler/icons-react";
import { useMemo } from "react";
import type { Schemas } from "../../../api/client";
import { Chart } from "../../charts/Chart";
import { Facts, type Fact } from "../../Facts";
import { count, percent, signed } from "../../format/format";
import { Examples } from "./Examples";
import { Section, Warnings } from "./Section";

type Recipe = Schemas["RecipeSection"];

/** What the paper claims, checked here, and what a recipe's stage kept beyond the figures: control, answers, caveats. */
export function RecipeSection({ recipe }: { recipe: Recipe }) {
  const checks = recipe.checks ?? [];
  const control = recipe.control;
  return (
    <>
      {recipe.quality === "synthetic" && (
        <Alert color="yellow" variant="light" title="Synthetic data">
          These figures come from texts that a script of Steerboard writes. They show that the methods work,
          never how good they are on real text.
        </Alert>
      )}
      <Checks checks={checks} />
      <Facts facts={factsOf(recipe)} columns={4} />
      {!!recipe.examples?.length && (
        <Section title="Answers of every entrant" headline="One prompt, side by side" opened>
          <Examples examples={recipe.examples} />
        </Section>
      )}
      {control && (
        <Section
          title="Control"
          headline={`Spearman of requested and achieved reward: ${control.spearman == null ? "–" : signed(control.spearman)}`}
        >
          <ControlCurve control={control} units={recipe.units} />
        </Section>
      )}
      <Training lines={recipe.training ?? []} />
      <Warnings warnings={recipe.warnings ?? []} title="Caveats of the recipe" />
    </>
  );
}

function factsOf({ reward_model: model, labelled_rewards: labelled, units, units_of: of }: Recipe): Fact[] {
  if (!model.name && model.held_out_accuracy == null) return [];
  const facts: Fact[] = [
    ["Reward model", percent(model.held_out_accuracy), `right on ${count(model.pairs)} held-out pairs`],
  ];
  if (model.independent_name)
    facts.push([
      "Independent reward model",
      percent(model.independent_held_out_accuracy),
      `${model.independent_name}: nothing here learned from it`,
    ]);
  if (labelled)
    facts.push([
      "Labelled rewards",
      `${signed(labelled.p20)} / ${signed(labelled.p50)} / ${signed(labelled.p80)}`,
      "20th, 50th and 80th percentile",
    ]);
  facts.push(["Units of rewards", units === "raw" ? "raw" : "z", units === "raw" ? "" : `of ${of}`]);
  return facts;
}

function Checks({ checks }: { checks: NonNullable<Recipe["checks"]> }) {
  if (!checks.length) return null;
  return (
    <List aria-label="What the paper claims, checked here" spacing={4} size="sm" center>
      {checks.map((check) => (
        <List.Item
          key={check.text}
          icon={
            <ThemeIcon size={20} radius="xl" variant="light" color={check.met ? "teal" : "red"}>
              {check.met ? <IconCheck size={14} aria-hidden /> : <IconX size={14} aria-hidden />}
            </ThemeIcon>
          }
        >
          <Text span size="sm" fw={600}>
            {check.met ? "Met: " : "Not met: "}
          </Text>
          {check.text}
        </List.Item>
      ))}
    </List>
  );
}

function ControlCurve({
  control,
  units,
}: {
  control: NonNullable<Recipe["control"]>;
  units: Recipe["units"];
}) {
  const lines = useMemo(() => {
    const pairs = control.requested
      .map((x, at) => ({ x, y: control.achieved[at] ?? null }))
      .sort((a, b) => a.x - b.x);
    return [{ label: "achieved", points: pairs }];
  }, [control]);
  return (
    <div>
      <Title order={3} size="h5" mb={4}>
        Requested against achieved
      </Title>
      <Text size="sm" c="dimmed" mb="sm">
        What was requested in the prompt, and the mean reward of the answers.
      </Text>
      <Card withBorder p="sm" maw={720}>
        <Chart lines={lines} x="requested score" y={`achieved reward (${units})`} height={260} marks />
      </Card>
    </div>
  );
}

/** Which weights each policy has, and whether it uses what it is asked for. */
function Training({ lines }: { lines: string[] }) {
  if (!lines.length) return null;
  return (
    <Section title="Training" headline={lines[0]}>
      <List size="sm">
        {lines.map((line) => (
          <List.Item key={line} style={{ overflowWrap: "anywhere" }}>
            {line}
          </List.Item>
        ))}
      </List>
    </Section>
  );
}

import {
  Alert,
  Button,
  Checkbox,
  Group,
  NumberInput,
  Radio,
  Select,
  Stack,
  Text,
  TextInput,
} from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Schemas } from "../../../api/client";
import { datasetsQuery } from "../../../api/datasets/datasets";
import { type Evaluation, placeOf } from "../../../api/evaluation/evaluations";
import { makePreferences, preferencesPreviewQuery } from "../../../api/evaluation/preferences";
import { useMay } from "../../../api/accounts/session";
import { ActionBar } from "../../../shared/ActionBar";
import { Empty } from "../../../shared/Feedback";
import { count, counted } from "../../../shared/format/format";
import { Link, LinkButton } from "../../../shared/links";
import { Section } from "../parts";
import { runKindsQuery } from "../../../api/runs/runKinds";
import { pairsText, type Split, SplitChoice } from "./SplitChoice";

/** Rankings and verdicts as pairs on which the next reward model is trained. */
export function PreferencesTab({ project, evaluation }: { project: string; evaluation: Evaluation }) {
  const client = useQueryClient();
  const mayWrite = useMay(project, "write");
  const campaigns = evaluation.campaigns.filter((one) => one.rankings > 0);
  const judges = evaluation.judges.filter((one) => one.ok > 0);
  // All that count, until someone chooses.
  const [chosen, setChosen] = useState<string[] | null>(null);
  const [pairs, setPairs] = useState<"all" | "best_worst">("all");
  const [votes, setVotes] = useState<"each" | "majority">("each");
  const [agreement, setAgreement] = useState<number | null>(null);
  const [criterion, setCriterion] = useState<string | null>(null);
  const [split, setSplit] = useState<Split>("by_prompt");
  const [name, setName] = useState("");
  const sources = [
    ...campaigns.map((one) => ({
      key: `campaign ${one.name}`,
      about: `${counted(one.rankings, "ranking")} by people`,
      counts: true,
    })),
    ...judges.map((one) => ({
      key: `judge ${one.name}`,
      about: `${counted(one.ok, "verdict")}${one.valid ? "" : `; not valid: ${one.invalid_because}`}`,
      counts: one.valid,
    })),
  ];
  const keys = sources.map((one) => one.key);
  const counting = sources.filter((one) => one.counts).map((one) => one.key);
  const all = chosen === null || (sources.length === 1 && counting.length === 1);
  const taken = all ? counting : chosen.filter((key) => keys.includes(key));
  const criteria = [
    ...new Set(
      campaigns
        .filter((one) => taken.includes(`campaign ${one.name}`))
        .flatMap((one) => one.criteria.map((each) => each.name)),
    ),
  ];
  const by = criterion && criteria.includes(criterion) ? criterion : null;
  const asked = {
    // Judges have no criterion: with one, those that are taken have to be named.
    from:
      all && by === null
        ? null
        : taken.map((key) => {
            const [kind, ...rest] = key.split(" ");
            return { [kind!]: rest.join(" ") };
          }),
    pairs,
    votes,
    min_agreement: agreement,
    criterion: by,
  };
  const preview = useQuery({
    ...preferencesPreviewQuery(project, evaluation.id, asked),
    enabled: !!taken.length,
  });
  const make = useMutation({
    mutationFn: () =>
      makePreferences(project, evaluation.id, {
        ...asked,
        split: preview.data?.held_out_pairs ? split : "by_prompt",
        name: name.trim() || null,
      }),
    onSuccess: () => client.invalidateQueries({ queryKey: datasetsQuery(project).queryKey }),
  });
  if (!sources.length) {
    return (
      <Section title="Preferences">
        <Empty title="No rankings or verdicts yet">
          Rankings by people and verdicts of judges become a preference dataset here, ready to train the next
          reward model on.
        </Empty>
      </Section>
    );
  }
  return (
    <Section
      title="Preferences"
      about="Every ordered pair becomes a row: the better answer is chosen, the worse rejected, with who decided, how many voted, and how far they agree. Ties are left out."
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          make.mutate();
        }}
      >
        <Stack maw={640} mb="lg">
          <Checkbox.Group
            label="From"
            description="All sources that count in the report; judges that you choose yourself always count"
            value={taken}
            onChange={setChosen}
          >
            <Stack gap="xs" mt="xs">
              {sources.map((one) => (
                <Checkbox key={one.key} value={one.key} label={one.key} description={one.about} />
              ))}
            </Stack>
          </Checkbox.Group>
          <Radio.Group label="Pairs" value={pairs} onChange={(value) => setPairs(value as typeof pairs)}>
            <Stack gap="xs" mt="xs">
              <Radio value="all" label="Every two answers of different rank" />
              <Radio value="best_worst" label="The best against the worst only" />
            </Stack>
          </Radio.Group>
          <Radio.Group label="Votes" value={votes} onChange={(value) => setVotes(value as typeof votes)}>
            <Stack gap="xs" mt="xs">
              <Radio value="each" label="One row per vote, even where people or judges disagree" />
              <Radio value="majority" label="One row per pair of answers, by majority" />
            </Stack>
          </Radio.Group>
          <NumberInput
            label="Minimum agreement, in percent"
            description="Share of all votes on two answers that are for the chosen one; ties count half"
            placeholder="any"
            min={0}
            max={100}
            step={5}
            value={agreement === null ? "" : Math.round(agreement * 100)}
            onChange={(value) =>
              setAgreement(typeof value === "number" ? Math.min(100, Math.max(0, value)) / 100 : null)
            }
          />
          {criteria.length > 0 && (
            <Select
              label="By"
              placeholder="the overall ranking"
              data={criteria}
              clearable
              value={criterion}
              error={placeOf(make.error, "criterion")}
              onChange={setCriterion}
            />
          )}
          {taken.length > 0 && <SplitChoice query={preview} value={split} onChange={setSplit} />}
          <TextInput
            label="Name of the dataset"
            description="A version number is appended"
            placeholder={`${evaluation.name}-preferences`}
            value={name}
            error={placeOf(make.error, "name")}
            onChange={(event) => setName(event.currentTarget.value)}
          />
        </Stack>
        {mayWrite ? (
          <ActionBar error={make.error} outcome={make.data && <Made project={project} dataset={make.data} />}>
            <Button
              type="submit"
              disabled={!taken.length || preview.data?.pairs === 0}
              loading={make.isPending}
            >
              Make the dataset
            </Button>
          </ActionBar>
        ) : (
          <Text size="sm" c="dimmed">
            Your role is read-only.
          </Text>
        )}
      </form>
    </Section>
  );
}

/** The new dataset, and what it can be used for. */
function Made({ project, dataset }: { project: string; dataset: Schemas["DatasetOut"] }) {
  const training = dataset.rows - dataset.held_out_rows;
  const kinds = useQuery(runKindsQuery(project));
  // Training reads no held-out row.
  const uses = (kinds.data ?? []).filter(
    (one) => one.for_data[dataset.kind] && (one.training !== null) === training > 0,
  );
  return (
    <Alert color="teal" variant="light" title={`${pairsText(dataset.rows)} in ${dataset.name}`}>
      <Text size="sm" mb="xs">
        {training === 0
          ? "All of them are held out: they can measure a reward model, but none can be trained on them."
          : `${count(training)} for training, ${count(dataset.held_out_rows)} held out.`}
      </Text>
      <Group gap="sm">
        <Link
          size="sm"
          underline="always"
          to="/p/$project/datasets/$dataset"
          params={{ project, dataset: dataset.name }}
          search={{}}
        >
          Open the dataset
        </Link>
        {uses.map((use) => (
          <LinkButton
            key={use.key}
            component="a"
            size="xs"
            to="/p/$project/launch/$kind"
            params={{ project, kind: use.key }}
            search={{ data: dataset.name }}
          >
            {use.for_data[dataset.kind]}
          </LinkButton>
        ))}
      </Group>
    </Alert>
  );
}

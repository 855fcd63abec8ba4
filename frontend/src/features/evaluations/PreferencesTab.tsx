import { Alert, Button, Checkbox, Group, Radio, Select, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api, data } from "../../api/client";
import { type Evaluation, placeOf } from "../../api/evaluations";
import { useMay } from "../../api/session";
import { Empty, Failure } from "../../shared/Feedback";
import { count } from "../../shared/format";
import { Link, LinkButton } from "../../shared/links";
import { Section } from "./parts";

/** Rankings and verdicts as pairs on which the next reward model is trained. */
export function PreferencesTab({ project, evaluation }: { project: string; evaluation: Evaluation }) {
  const client = useQueryClient();
  const mayWrite = useMay(project, "write");
  const campaigns = evaluation.campaigns.filter((one) => one.rankings > 0);
  const judges = evaluation.judges.filter((one) => one.ok > 0);
  const [chosen, setChosen] = useState<string[]>([]);
  const [pairs, setPairs] = useState<"all" | "best_worst">("all");
  const [criterion, setCriterion] = useState<string | null>(null);
  const [name, setName] = useState("");
  const sources = [
    ...campaigns.map((one) => ({
      key: `campaign ${one.name}`,
      about: `${count(one.rankings)} rankings by people`,
    })),
    ...judges.map((one) => ({ key: `judge ${one.name}`, about: `${count(one.ok)} verdicts` })),
  ];
  // With one source there is nothing to choose.
  const taken =
    sources.length === 1 ? [sources[0]!.key] : chosen.filter((key) => sources.some((one) => one.key === key));
  const criteria = [
    ...new Set(
      campaigns
        .filter((one) => taken.includes(`campaign ${one.name}`))
        .flatMap((one) => one.criteria.map((each) => each.name)),
    ),
  ];
  const make = useMutation({
    mutationFn: () =>
      data(
        api.POST("/api/v1/projects/{project}/evaluations/{evaluation}/preferences", {
          params: { path: { project, evaluation: evaluation.id } },
          body: {
            from: taken.map((key) => {
              const [kind, ...rest] = key.split(" ");
              return { [kind!]: rest.join(" ") };
            }),
            pairs,
            criterion: criterion && criteria.includes(criterion) ? criterion : null,
            name: name.trim() || null,
          },
        }),
      ),
    onSuccess: () => client.invalidateQueries({ queryKey: [project, "datasets"] }),
  });
  if (!sources.length) {
    return (
      <Section title="Preferences">
        <Empty title="Nothing to learn from yet">
          Rankings by people and verdicts of judges become a preference dataset here, ready to train the next
          reward model on.
        </Empty>
      </Section>
    );
  }
  return (
    <Section
      title="Preferences"
      about="Every ordered pair becomes a row: the better answer is chosen, the worse rejected, with who said so and when. Ties are left out; people who disagree each have their own row."
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          make.mutate();
        }}
      >
        <Stack maw={640}>
          <Checkbox.Group label="From" value={taken} onChange={setChosen}>
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
          <TextInput
            label="Name of the dataset"
            description="A number is put behind it: each time a version"
            placeholder={`${evaluation.name}-preferences`}
            value={name}
            error={placeOf(make.error, "name")}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          {make.error && <Failure error={make.error} />}
          {make.data && (
            <Alert color="teal" variant="light" title={`${count(make.data.rows)} pairs in ${make.data.name}`}>
              <Group gap="sm">
                <Link
                  size="sm"
                  underline="always"
                  to="/p/$project/datasets/$dataset"
                  params={{ project, dataset: make.data.name }}
                  search={{}}
                >
                  Look at it
                </Link>
                <LinkButton
                  component="a"
                  size="xs"
                  to="/p/$project/launch/$kind"
                  params={{ project, kind: "reward_model" }}
                  search={{ data: make.data.name }}
                >
                  Train a reward model on it
                </LinkButton>
              </Group>
            </Alert>
          )}
          {mayWrite ? (
            <Group>
              <Button type="submit" disabled={!taken.length} loading={make.isPending}>
                Make the dataset
              </Button>
            </Group>
          ) : (
            <Text size="sm" c="dimmed">
              Your role only reads.
            </Text>
          )}
        </Stack>
      </form>
    </Section>
  );
}

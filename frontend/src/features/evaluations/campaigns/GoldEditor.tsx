import { Button, Group, NumberInput, Stack, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type Campaign, goldQuery, removeGold, saveGold } from "../../../api/evaluation/campaigns";
import { type Evaluation, evaluationKeys, promptAtQuery } from "../../../api/evaluation/evaluations";
import { Failure, Loaded } from "../../../shared/Feedback";
import { count } from "../../../shared/format/format";

interface Properties {
  project: string;
  evaluation: Evaluation;
  campaign: Campaign;
  mayWrite: boolean;
}

/** Prompts whose right ranks are known. Annotators do not see which these are. */
export function GoldEditor({ project, evaluation, campaign, mayWrite }: Properties) {
  const client = useQueryClient();
  const query = useQuery(goldQuery(project, evaluation.id, campaign.id));
  const [position, setPosition] = useState<number | null>(null);
  const remove = useMutation({
    mutationFn: (at: number) => removeGold(project, evaluation.id, campaign.id, at),
    onSuccess: () => client.invalidateQueries({ queryKey: evaluationKeys.all(project) }),
  });
  return (
    <Stack>
      <Text size="sm" c="dimmed">
        Every annotator ranks these too; how often they put a pair of answers in the known order shows who
        works with care.
      </Text>
      <Loaded query={query} rows={2}>
        {(found) => (
          <Stack gap="xs">
            {!found.items.length && <Text size="sm">There is none yet.</Text>}
            {found.items.map((one) => (
              <Group key={one.position} justify="space-between" gap="xs">
                <Text size="sm">
                  Prompt {one.position + 1}:{" "}
                  {Object.entries(one.ranks)
                    .sort((a, b) => a[1] - b[1])
                    .map(([name, rank]) => `${rank}. ${name}`)
                    .join(", ")}
                </Text>
                {mayWrite && (
                  <Group gap={4}>
                    <Button
                      size="compact-xs"
                      variant="default"
                      onClick={() => setPosition(one.position)}
                      aria-label={`Change gold prompt ${one.position + 1}`}
                    >
                      Change
                    </Button>
                    <Button
                      size="compact-xs"
                      variant="subtle"
                      color="red"
                      loading={remove.isPending}
                      onClick={() => remove.mutate(one.position)}
                      aria-label={`Remove gold prompt ${one.position + 1}`}
                    >
                      Remove
                    </Button>
                  </Group>
                )}
              </Group>
            ))}
          </Stack>
        )}
      </Loaded>
      {remove.error && <Failure error={remove.error} />}
      {mayWrite && (
        <NumberInput
          label="Add a gold prompt"
          description={`Its number, 1 to ${count(evaluation.prompts)}, as under Answers`}
          min={1}
          max={evaluation.prompts}
          allowDecimal={false}
          w={280}
          value={position === null ? "" : position + 1}
          onChange={(value) => setPosition(typeof value === "number" && value >= 1 ? value - 1 : null)}
        />
      )}
      {mayWrite && position !== null && position < evaluation.prompts && (
        <GoldForm
          key={`${position} ${!!query.data}`}
          project={project}
          evaluation={evaluation}
          campaign={campaign}
          position={position}
          known={query.data?.items.find((one) => one.position === position)?.ranks}
          onDone={() => setPosition(null)}
        />
      )}
    </Stack>
  );
}

function GoldForm({
  project,
  evaluation,
  campaign,
  position,
  known,
  onDone,
}: Omit<Properties, "mayWrite"> & {
  position: number;
  known?: Record<string, number>;
  onDone: () => void;
}) {
  const client = useQueryClient();
  const prompt = useQuery(promptAtQuery(project, evaluation.id, position));
  const [ranks, setRanks] = useState<Record<string, number>>(known ?? {});
  const save = useMutation({
    mutationFn: () => saveGold(project, evaluation.id, campaign.id, position, ranks),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: evaluationKeys.all(project) });
      onDone();
    },
  });
  return (
    <Loaded query={prompt} rows={4}>
      {(found) => (
        <Stack gap="xs">
          <pre className="text" style={{ fontWeight: 600 }}>
            {found?.messages.map((turn) => turn.content).join("\n")}
          </pre>
          {campaign.entrants.map((name) => (
            <Group key={name} align="flex-start" wrap="nowrap" gap="sm">
              <NumberInput
                aria-label={`Correct rank of ${name}`}
                placeholder="rank"
                min={1}
                max={campaign.entrants.length}
                allowDecimal={false}
                w={76}
                value={ranks[name] ?? ""}
                onChange={(value) => {
                  const others = Object.entries(ranks).filter(([other]) => other !== name);
                  setRanks(
                    Object.fromEntries(typeof value === "number" ? [...others, [name, value]] : others),
                  );
                }}
              />
              <div className="evaluation-answer" style={{ flex: 1 }}>
                <Text size="xs" c="dimmed">
                  {name}
                </Text>
                <pre className="text">
                  {found?.responses.find((one) => one.entrant === name)?.turns.join("\n\n") ??
                    "No answer yet."}
                </pre>
              </div>
            </Group>
          ))}
          {save.error && <Failure error={save.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onDone}>
              Cancel
            </Button>
            <Button
              loading={save.isPending}
              disabled={campaign.entrants.some((name) => ranks[name] === undefined)}
              onClick={() => save.mutate()}
            >
              Save these ranks
            </Button>
          </Group>
        </Stack>
      )}
    </Loaded>
  );
}

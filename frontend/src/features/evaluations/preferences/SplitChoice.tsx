import { Radio, Stack, Text } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import type { Schemas } from "../../../api/client";
import { Failure } from "../../../shared/Feedback";
import { count, percent } from "../../../shared/format/format";

type Preview = Schemas["PreferencesPreview"];
export type Split = NonNullable<Schemas["PreferencesCreate"]["split"]>;

export const pairsText = (pairs: number) => `${count(pairs)} ${pairs === 1 ? "pair" : "pairs"}`;

/** How many pairs there will be to train on, and what happens to those whose prompts are held out. */
export function SplitChoice({
  query,
  value,
  onChange,
}: {
  query: UseQueryResult<Preview>;
  value: Split;
  onChange: (split: Split) => void;
}) {
  if (query.error) return <Failure error={query.error} retry={() => void query.refetch()} />;
  const found = query.data;
  if (!found) {
    return (
      <Text size="sm" c="dimmed" aria-busy="true">
        Counting the pairs.
      </Text>
    );
  }
  const training = found.pairs - found.held_out_pairs;
  const prompts = `${count(found.prompts)} ${found.prompts === 1 ? "prompt" : "prompts"}`;
  return (
    <>
      <Text size="sm" role="status">
        {found.pairs === 0
          ? "No answer is preferred to another yet: no one has ranked, or everything is a tie."
          : `${pairsText(found.pairs)} from ${prompts}: ${count(training)} for training, ${count(found.held_out_pairs)} held out.`}
      </Text>
      {found.agreement !== null && found.compared > 0 && (
        <Text size="sm" c="dimmed">
          {percent(found.agreement, 0)} of the votes agree with the chosen answers, on average; votes differ
          on {count(found.contested)} of {count(found.compared)} compared answers.
          {found.left_out.disagreement
            ? ` ${count(found.left_out.disagreement)} pairs have too little agreement.`
            : ""}
        </Text>
      )}
      <LeftOut found={found} />
      {found.held_out_pairs > 0 && (
        <Radio.Group
          label={`Pairs of ${found.held_out_prompts === 1 ? "the held-out prompt" : `the ${count(found.held_out_prompts)} held-out prompts`}`}
          description="The project keeps these prompts out of training, so that models can be measured on them."
          value={value}
          onChange={(chosen) => onChange(chosen as Split)}
        >
          <Stack gap="xs" mt="xs">
            <Radio
              value="by_prompt"
              label="Keep them held out"
              description={
                training
                  ? `A reward model learns from the other ${pairsText(training)} and is measured on these.`
                  : "Nothing is left to train a reward model on; the dataset can only measure one."
              }
            />
            <Radio
              value="train"
              label="Use them for training"
              description="Models that learn from them have seen these prompts: evaluations mark them as seen in training. Other datasets still hold them out, and so does a mixture made of this one."
            />
          </Stack>
        </Radio.Group>
      )}
    </>
  );
}

const LEFT_OUT: Record<string, string> = {
  judge_not_valid: "of judges that are not valid",
  entrant_not_valid: "with an entrant on which the judge is not valid",
  one_order: "with a usable verdict in only one of two orders",
};

/** Verdicts that do not count, of judges that no one has chosen. */
function LeftOut({ found }: { found: Preview }) {
  const parts = Object.entries(LEFT_OUT)
    .filter(([reason]) => found.left_out[reason])
    .map(([reason, words]) => `${pairsText(found.left_out[reason]!)} ${words}`);
  if (!parts.length) return null;
  return (
    <Text size="sm" c="dimmed">
      Left out: {parts.join(", ")}.
    </Text>
  );
}

import {
  ActionIcon,
  Button,
  Group,
  MultiSelect,
  NumberInput,
  SimpleGrid,
  Stack,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { createCampaign } from "../../../api/evaluation/campaigns";
import { type Evaluation, evaluationKeys, placeOf } from "../../../api/evaluation/evaluations";
import { SendForm } from "../../../shared/forms/SendForm";

const MOST_AT_ONCE = 8;
/** The criteria of the paper's own questionnaire. */
const PAPER = [
  { name: "Helpfulness", description: "Detailed, clear and friendly." },
  { name: "Harmlessness", description: "Contains nothing harmful." },
];

interface Properties {
  project: string;
  evaluation: Evaluation;
  onDone: () => void;
}

export function CampaignForm({ project, evaluation, onDone }: Properties) {
  const client = useQueryClient();
  const names = evaluation.entrants.map((one) => one.name);
  const [name, setName] = useState("");
  const [instructions, setInstructions] = useState("");
  const [criteria, setCriteria] = useState<{ name: string; description: string }[]>([]);
  const [entrants, setEntrants] = useState(names.slice(0, MOST_AT_ONCE));
  const [overlap, setOverlap] = useState<number | string>(1);
  const [minutes, setMinutes] = useState<number | string>(10);
  const [goldEvery, setGoldEvery] = useState<number | string>(0);
  const [limit, setLimit] = useState<number | string>("");
  const make = useMutation({
    mutationFn: () =>
      createCampaign(project, evaluation.id, {
        name: name.trim() || null,
        instructions,
        criteria: criteria.filter((one) => one.name.trim()),
        entrants,
        overlap: Number(overlap),
        lock_seconds: Math.round(60 * Number(minutes)),
        gold_every: Number(goldEvery),
        limit: limit === "" ? null : Number(limit),
      }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: evaluationKeys.all(project) });
      onDone();
    },
  });
  const error = (field: string) => placeOf(make.error, field);
  return (
    <SendForm send={make} label="Open the campaign" disabled={entrants.length < 2}>
      <TextInput
        label="Name"
        description="Annotators see it, so it should not reveal which models are compared"
        placeholder="generated when empty"
        value={name}
        error={error("name")}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Textarea
        label="Instructions"
        description="What a good answer is, in your words"
        autosize
        minRows={2}
        value={instructions}
        error={error("instructions")}
        onChange={(event) => setInstructions(event.currentTarget.value)}
      />
      <MultiSelect
        label="Entrants"
        description="Two to eight are ranked together"
        data={names}
        value={entrants}
        maxValues={MOST_AT_ONCE}
        error={error("entrants")}
        onChange={setEntrants}
      />
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <NumberInput
          label="Rankings of each prompt"
          description="By different annotators; two or more show whether they agree"
          min={1}
          max={100}
          allowDecimal={false}
          value={overlap}
          error={error("overlap")}
          onChange={setOverlap}
        />
        <NumberInput
          label="Maximum number of prompts"
          description="Drawn at random; all of them when empty"
          min={1}
          allowDecimal={false}
          value={limit}
          error={error("limit")}
          onChange={setLimit}
        />
        <NumberInput
          label="Time limit"
          description="Minutes for which a prompt is reserved for one annotator"
          min={1}
          max={1440}
          value={minutes}
          error={error("lock_seconds")}
          onChange={setMinutes}
        />
        <NumberInput
          label="One gold prompt in every"
          description="Prompts whose ranks are known, set later; 0: gold prompts come first"
          min={0}
          max={1000}
          allowDecimal={false}
          value={goldEvery}
          error={error("gold_every")}
          onChange={setGoldEvery}
        />
      </SimpleGrid>
      <Criteria criteria={criteria} onChange={setCriteria} error={error("criteria")} />
    </SendForm>
  );
}

type Criterion = { name: string; description: string };

function Criteria({
  criteria,
  onChange,
  error,
}: {
  criteria: Criterion[];
  onChange: (criteria: Criterion[]) => void;
  error?: string;
}) {
  const set = (at: number, change: Partial<Criterion>) =>
    onChange(criteria.map((one, place) => (place === at ? { ...one, ...change } : one)));
  return (
    <Stack gap="xs">
      <div>
        <Text size="sm" fw={500}>
          Criteria
        </Text>
        <Text size="xs" c="dimmed">
          {criteria.length
            ? "Each is a ranking of its own, so every prompt takes that much longer."
            : "None: one overall ranking."}
        </Text>
      </div>
      {criteria.map((one, at) => (
        <Group key={at} gap="xs" align="flex-end" wrap="nowrap">
          <TextInput
            aria-label={`Criterion ${at + 1}`}
            placeholder="Helpfulness"
            value={one.name}
            w={170}
            onChange={(event) => set(at, { name: event.currentTarget.value })}
          />
          <TextInput
            aria-label={`What criterion ${at + 1} means`}
            placeholder="What it means"
            value={one.description}
            flex={1}
            onChange={(event) => set(at, { description: event.currentTarget.value })}
          />
          <ActionIcon
            variant="subtle"
            color="gray"
            mb={4}
            aria-label={`Remove criterion ${at + 1}`}
            onClick={() => onChange(criteria.filter((_, place) => place !== at))}
          >
            <IconX size={16} />
          </ActionIcon>
        </Group>
      ))}
      {error && (
        <Text size="xs" c="red">
          {error}
        </Text>
      )}
      <Group gap="xs">
        <Button
          size="compact-sm"
          variant="default"
          disabled={criteria.length >= 8}
          onClick={() => onChange([...criteria, { name: "", description: "" }])}
        >
          Add a criterion
        </Button>
        {!criteria.length && (
          <Button size="compact-sm" variant="subtle" onClick={() => onChange(PAPER)}>
            Helpfulness and harmlessness
          </Button>
        )}
      </Group>
    </Stack>
  );
}

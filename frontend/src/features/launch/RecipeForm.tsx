import {
  Accordion,
  Alert,
  Badge,
  Button,
  Card,
  Group,
  SimpleGrid,
  Stack,
  Switch,
  Tabs,
  Text,
  Textarea,
  TextInput,
  Title,
} from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { api, data, Problem, type Schemas } from "../../api/client";
import { Failure } from "../../shared/Feedback";
import { show } from "../../shared/schemaForm";
import { ThingSelect } from "./ThingSelect";

type Recipe = Schemas["RecipeOut"];
type Plan = Schemas["PlanOut"];

export function RecipeForm({
  project,
  recipe,
  overrides = [],
  onBack,
}: {
  project: string;
  recipe: Recipe;
  /** `input=value` and `stage.field=value` to begin with. */
  overrides?: string[];
  onBack: () => void;
}) {
  const [text, setText] = useState(recipe.text);
  const [inputs, setInputs] = useState(() => named(overrides, false));
  const [fields, setFields] = useState(() => named(overrides, true));
  const [reuse, setReuse] = useState(true);
  const client = useQueryClient();
  const navigate = useNavigate();

  const set = useMemo(
    () =>
      [...Object.entries(inputs), ...Object.entries(fields)]
        .filter(([, value]) => value !== "")
        .map(([name, value]) => `${name}=${value}`),
    [inputs, fields],
  );
  const [asked] = useDebouncedValue({ text, set }, 400);
  const path = { path: { project } };
  const read = useQuery({
    queryKey: [project, "recipe-text", asked.text],
    queryFn: () =>
      data(api.POST("/api/v1/projects/{project}/recipes/read", { params: path, body: { text: asked.text } })),
    placeholderData: keepPreviousData,
    retry: false,
  });
  const shown = read.data?.inputs ?? recipe.inputs;
  const missing = shown.filter((input) => !input.optional && !inputs[input.name]).map((input) => input.name);
  const check = useQuery({
    queryKey: [project, "recipe-check", asked],
    queryFn: () => data(api.POST("/api/v1/projects/{project}/recipes/check", { params: path, body: asked })),
    enabled: !missing.length && !read.error,
    placeholderData: keepPreviousData,
    retry: false,
  });
  const start = useMutation({
    mutationFn: () =>
      data(api.POST("/api/v1/projects/{project}/pipelines", { params: path, body: { text, set, reuse } })),
    onSuccess: async (pipeline) => {
      await client.invalidateQueries({ queryKey: [project] });
      await navigate({ to: "/p/$project/pipelines/$pipeline", params: { project, pipeline: pipeline.name } });
    },
  });
  const fault = read.error ?? check.error;

  return (
    <Stack gap="lg">
      <Group justify="space-between">
        <div>
          <Title order={2} size="h3">
            {recipe.name}
          </Title>
          <Text c="dimmed" size="sm">
            {recipe.description}
          </Text>
        </div>
        <Button variant="subtle" onClick={onBack}>
          All recipes
        </Button>
      </Group>
      <Card withBorder>
        <Title order={3} size="h5" mb="sm">
          Inputs
        </Title>
        <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }}>
          {shown.map((input) => (
            <ThingSelect
              key={input.name}
              project={project}
              type={input.type}
              allowed={input.kind ? [input.kind] : []}
              label={input.name}
              required={!input.optional}
              value={inputs[input.name] ?? null}
              extra={input.type === "model" ? ["random:tiny-llama"] : []}
              onChange={(value) => setInputs((before) => ({ ...before, [input.name]: value ?? "" }))}
            />
          ))}
        </SimpleGrid>
      </Card>
      <Tabs defaultValue="stages">
        <Tabs.List>
          <Tabs.Tab value="stages">Stages</Tabs.Tab>
          <Tabs.Tab value="yaml">YAML</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="stages" pt="md">
          {check.data ? (
            <StageFields
              plan={check.data}
              fields={fields}
              onChange={(name, value) => setFields((before) => ({ ...before, [name]: value }))}
            />
          ) : (
            <Text size="sm" c="dimmed">
              {missing.length
                ? `Choose ${missing.join(", ")} first; then every stage shows here with all of its settings.`
                : "Checking the recipe."}
            </Text>
          )}
        </Tabs.Panel>
        <Tabs.Panel value="yaml" pt="md">
          <Textarea
            aria-label="The recipe as YAML"
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
            autosize
            minRows={12}
            maxRows={32}
            spellCheck={false}
            styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 13 } }}
          />
        </Tabs.Panel>
      </Tabs>
      {fault && <Failure error={fault} />}
      {check.data?.notes.map((note) => (
        <Alert key={note} color="gray" variant="light">
          {note}
        </Alert>
      ))}
      {start.error && !(fault instanceof Problem) && <Failure error={start.error} />}
      <Group justify="space-between">
        <Switch
          label="Reuse stages that have finished with the same settings and inputs"
          checked={reuse}
          onChange={(event) => setReuse(event.currentTarget.checked)}
        />
        <Button
          size="md"
          disabled={!!missing.length || !!fault}
          loading={start.isPending}
          onClick={() => start.mutate()}
        >
          Launch
        </Button>
      </Group>
    </Stack>
  );
}

/** The overrides of stages (`ofStages`), or those of inputs, by what they set. */
function named(overrides: string[], ofStages: boolean): Record<string, string> {
  return Object.fromEntries(
    overrides
      .map((text) => [text.slice(0, text.indexOf("=")).trim(), text.slice(text.indexOf("=") + 1)] as const)
      .filter(([name]) => name.includes(".") === ofStages),
  );
}

function StageFields({
  plan,
  fields,
  onChange,
}: {
  plan: Plan;
  fields: Record<string, string>;
  onChange: (name: string, value: string) => void;
}) {
  return (
    <Accordion variant="separated" multiple>
      {plan.stages.map((stage) => {
        const changes = Object.keys(fields).filter(
          (name) => name.startsWith(`${stage.name}.`) && fields[name] !== "",
        ).length;
        return (
          <Accordion.Item value={stage.name} key={stage.name}>
            <Accordion.Control>
              <Group gap="xs">
                <Text fw={600}>{stage.name}</Text>
                <Badge color="gray">{stage.method ?? stage.kind}</Badge>
                {stage.implied && <Badge color="indigo">added by the planner</Badge>}
                {changes > 0 && <Badge>{changes} changed</Badge>}
              </Group>
            </Accordion.Control>
            <Accordion.Panel>
              <Text size="sm" c="dimmed" mb="sm">
                Reads{" "}
                {Object.entries(stage.inputs)
                  .map(([name, input]) => `${name} from ${input.name}`)
                  .join(", ") || "nothing"}
                .
              </Text>
              <SimpleGrid cols={{ base: 1, xs: 2, md: 3, xl: 4 }}>
                {Object.entries(stage.config)
                  .filter(
                    ([name, value]) =>
                      !["run", "method"].includes(name) && (value === null || typeof value !== "object"),
                  )
                  .map(([name, value]) => (
                    <TextInput
                      key={name}
                      label={name}
                      placeholder={show(value) || "none"}
                      value={fields[`${stage.name}.${name}`] ?? ""}
                      disabled={stage.implied}
                      onChange={(event) => onChange(`${stage.name}.${name}`, event.currentTarget.value)}
                    />
                  ))}
              </SimpleGrid>
            </Accordion.Panel>
          </Accordion.Item>
        );
      })}
    </Accordion>
  );
}

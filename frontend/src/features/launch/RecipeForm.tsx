import { Alert, Button, Card, Group, SimpleGrid, Stack, Switch, Tabs, Text, Title } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useMemo, useState } from "react";
import { everything, type FaultPlace, Problem, type Schemas } from "../../api/client";
import { launchPipeline } from "../../api/runs/pipelines";
import { recipeDraftQuery, recipeTextQuery, stageRowChecksQuery } from "../../api/runs/recipes";
import { ActionBar } from "../../shared/ActionBar";
import { Failure, Loading } from "../../shared/Feedback";
import { listed } from "../../shared/format/format";
import { RunWarnings } from "../../shared/RunWarnings";
import { faultOf } from "./recipeFaults";
import { LostSettings, StageFields } from "./StageFields";
import { refusedStages, someOf, StageRowChecks } from "./StageRowChecks";
import { ThingSelect } from "./ThingSelect";
import { placeOf, type TextPlace } from "./yaml/faultPlaces";

const YamlEditor = lazy(() => import("./yaml/YamlEditor").then((module) => ({ default: module.YamlEditor })));

type Recipe = Schemas["RecipeOut"];
type Draft = Schemas["DraftOut"];

const NONE: Draft["faults"] = [];

const warningsOf = (stage: Draft["stages"][number]) =>
  (stage.warnings ?? []).map((one) => ({ ...one, message: `${stage.name}: ${one.message}` }));

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
  // What differs from the recipe, as `--set` names it: `base`, `sft.lr`.
  const [texts, setTexts] = useState(() => byName(overrides));
  const [reuse, setReuse] = useState(true);
  const [tab, setTab] = useState<string | null>("stages");
  const [target, setTarget] = useState<TextPlace | null>(null);
  // The editor comes with its tab, and stays with what can be undone in it.
  const [opened, setOpened] = useState(false);
  if (tab === "yaml" && !opened) setOpened(true);
  const client = useQueryClient();
  const navigate = useNavigate();

  const set = useMemo(
    () =>
      Object.entries(texts)
        .filter(([, value]) => value !== "")
        .map(([name, value]) => `${name}=${value}`),
    [texts],
  );
  // One object as long as nothing changes: another one would restart the wait at each rendering.
  const now = useMemo(() => ({ text, set }), [text, set]);
  const [asked] = useDebouncedValue(now, 400);
  const read = useQuery(recipeTextQuery(project, asked.text));
  const shown = read.data?.inputs ?? recipe.inputs;
  const missing = shown.filter((input) => !input.optional && !texts[input.name]).map((input) => input.name);
  // What was there before the last change may have been incomplete, and a text must have been read first.
  const settled = asked === now && read.isSuccess && !read.isPlaceholderData;
  const check = useQuery({ ...recipeDraftQuery(project, asked), enabled: settled && !missing.length });
  // The stages stay on the page whatever the server's verdict on the last input, or the text could not be corrected.
  const [draft, setDraft] = useState<Draft>();
  if (check.data && check.data !== draft) setDraft(check.data);
  const start = useMutation({
    mutationFn: () => launchPipeline(project, { text, set, reuse }),
    onSuccess: async (pipeline) => {
      await client.invalidateQueries({ queryKey: everything(project) });
      await navigate({ to: "/p/$project/pipelines/$pipeline", params: { project, pipeline: pipeline.name } });
    },
  });
  const change = (name: string, value: string) => setTexts((before) => ({ ...before, [name]: value }));
  const unread = read.error ?? check.error;
  const faults = draft && !unread && !missing.length ? draft.faults : NONE;
  const places = unread instanceof Problem ? unread.places : faults;
  const wrong = Object.keys(texts).filter((name) => texts[name] && faultOf(faults, name));
  const stages = draft?.stages ?? [];
  const startable =
    settled && !missing.length && check.isSuccess && !check.isPlaceholderData && !faults.length;
  const rows = useQuery({ ...stageRowChecksQuery(project, asked), enabled: startable });
  const refused = rows.data && !rows.isPlaceholderData ? refusedStages(rows.data) : [];
  const lost = wrong.filter(
    (name) =>
      !shown.some((input) => input.name === name) &&
      !stages.some((stage) => name.startsWith(`${stage.name}.`)),
  );
  // Faults in typed fields are shown at the field.
  const others = faults.filter((fault) => !wrong.some((name) => faultOf([fault], name)));
  const wayTo = (fault: FaultPlace) => {
    const place = placeOf(fault);
    return (
      place &&
      (() => {
        setTab("yaml");
        setTarget({ ...place });
      })
    );
  };

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
      {shown.length > 0 && (
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
                allowed={input.kind ? [input.kind] : (input.roles ?? [])}
                whole={input.whole}
                label={input.name}
                required={!input.optional}
                value={texts[input.name] || null}
                error={texts[input.name] && faultOf(faults, input.name)?.message}
                free={takesBase(input)}
                extra={takesBase(input) ? ["random:tiny-llama"] : []}
                onChange={(value) => change(input.name, value ?? "")}
              />
            ))}
          </SimpleGrid>
        </Card>
      )}
      <Tabs value={tab} onChange={setTab}>
        <Tabs.List>
          <Tabs.Tab value="stages">Stages</Tabs.Tab>
          <Tabs.Tab value="yaml">YAML</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="stages" pt="md">
          {draft ? (
            <StageFields stages={stages} faults={faults} texts={texts} onChange={change} />
          ) : (
            <Text size="sm" c="dimmed">
              {read.error
                ? "The YAML cannot be read; correct it first."
                : missing.length
                  ? `Choose ${listed(missing)} first; then every stage shows here with all of its settings.`
                  : "Checking the recipe."}
            </Text>
          )}
        </Tabs.Panel>
        <Tabs.Panel value="yaml" pt="md">
          {opened && (
            <Suspense fallback={<Loading rows={8} />}>
              <YamlEditor
                label="The recipe as YAML"
                value={text}
                faults={places}
                target={target}
                onChange={setText}
              />
            </Suspense>
          )}
        </Tabs.Panel>
      </Tabs>
      <LostSettings names={lost} faults={faults} texts={texts} onChange={change} />
      {unread && <Failure error={unread} wayTo={wayTo} />}
      {others.length > 0 && (
        <Failure
          wayTo={wayTo}
          error={
            new Problem(
              422,
              "invalid_recipe",
              "The recipe cannot be used",
              "Correct each fault in its field or in the YAML.",
              null,
              others,
            )
          }
        />
      )}
      {rows.data && !missing.length && !unread && !faults.length && <StageRowChecks found={rows.data} />}
      <RunWarnings warnings={(draft?.stages ?? []).flatMap(warningsOf)} />
      {draft?.notes.map((note) => (
        <Alert key={note} color="gray" variant="light" role="note">
          {note}
        </Alert>
      ))}
      <Switch
        label="Reuse stages that have finished with the same settings and inputs"
        checked={reuse}
        onChange={(event) => setReuse(event.currentTarget.checked)}
      />
      <ActionBar
        error={unread || faults.length ? null : start.error}
        says={
          <>
            {missing.length > 0 && (
              <Text size="sm" c="dimmed">
                Choose {listed(missing)} first.
              </Text>
            )}
            {wrong.length > 0 && (
              <Text size="sm" c="dimmed">
                Correct {listed(wrong)} first.
              </Text>
            )}
            {!wrong.length && (unread || others.length > 0) && (
              <Text size="sm" c="red">
                {unread instanceof Problem ? unread.title : "The recipe cannot be used"}
              </Text>
            )}
            {refused.length > 0 && (
              <Text size="sm" c="red">
                The rows of {someOf(refused)} prevent the launch.
              </Text>
            )}
          </>
        }
      >
        <Button
          size="md"
          disabled={!draft || !!missing.length || !!unread || !!faults.length || !!refused.length}
          loading={start.isPending}
          onClick={() => start.mutate()}
        >
          Launch
        </Button>
      </ActionBar>
    </Stack>
  );
}

/** Whether a model that is not in the project may be imported for it. */
function takesBase({ type, roles }: Recipe["inputs"][number]): boolean {
  return type === "model" && (!roles?.length || roles.includes("base"));
}

/** `name=value` by name. */
function byName(overrides: string[]): Record<string, string> {
  return Object.fromEntries(
    overrides.map((text) => {
      const [name, ...value] = text.split("=");
      return [name!.trim(), value.join("=")];
    }),
  );
}

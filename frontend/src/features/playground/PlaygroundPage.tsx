import { Button, SimpleGrid, Stack } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import type { Schemas } from "../../api/client";
import { endpointsQuery } from "../../api/models/endpoints";
import { modelsQuery } from "../../api/models/models";
import {
  compare,
  type Comparison,
  comparisonQuery,
  comparisonsQuery,
  followComparison,
} from "../../api/models/playground";
import { useMay } from "../../api/accounts/session";
import { Empty, Failure, Loading } from "../../shared/Feedback";
import { Page } from "../../shared/Page";
import { Link, LinkButton } from "../../shared/links";
import { AnswerColumn } from "./AnswerColumn";
import { CurveCard } from "./CurveCard";
import {
  bodyOf,
  draftOf,
  firstDraft,
  newColumn,
  targetOf,
  targetsOf,
  type Column,
  type Draft,
} from "./draft";
import { Earlier } from "./Earlier";
import { PromptCard } from "./PromptCard";
import type { ScoreScale } from "./scoreScale";
import { useByName } from "../../shared/forms/useByName";

const route = getRouteApi("/p/$project/playground");
const MOST_COLUMNS = 8;

export function PlaygroundPage() {
  const { project } = route.useParams();
  const { c, model } = route.useSearch();
  const endpoints = useQuery({ ...endpointsQuery(project), retry: false });
  const comparison = useQuery({ ...comparisonQuery(project, c ?? ""), enabled: !!c });
  const models = useByName((name) => modelsQuery(project, name ? { name } : undefined), {
    chosen: [model, ...(comparison.data?.columns ?? []).map((one) => one.model?.name)],
  });
  const waits = !models.data || endpoints.isPending || (c && comparison.isPending);
  return (
    <Page
      title="Playground"
      about="One prompt, several models and scores, side by side. A link keeps each comparison."
    >
      {comparison.error && <Failure error={comparison.error} retry={() => void comparison.refetch()} />}
      {waits ? (
        models.query.error ? (
          <Failure error={models.query.error} retry={() => void models.query.refetch()} />
        ) : (
          <Loading />
        )
      ) : (
        <Asked
          project={project}
          models={models.data as Schemas["ModelOut"][]}
          onSearchModel={models.onSearchChange}
          endpoints={endpoints.data ?? []}
          comparison={comparison.data}
          wanted={model}
        />
      )}
    </Page>
  );
}

interface AskedProperties {
  project: string;
  models: Schemas["ModelOut"][];
  onSearchModel: (part: string) => void;
  endpoints: Schemas["EndpointOut"][];
  comparison: Comparison | undefined;
  /** Model that a link from elsewhere asks to try. */
  wanted: string | undefined;
}

function Asked({ project, models, onSearchModel, endpoints, comparison, wanted }: AskedProperties) {
  const navigate = route.useNavigate();
  const client = useQueryClient();
  const mayRun = useMay(project, "run");
  const targets = useMemo(() => targetsOf(models, endpoints), [models, endpoints]);
  const [draft, setDraft] = useState<Draft>(() =>
    comparison ? draftOf(comparison) : firstDraft(targets, models, wanted),
  );
  const shown = comparison?.id;
  useEffect(() => {
    if (!shown) return;
    const stop = new AbortController();
    void followComparison(project, shown, client, stop.signal);
    return () => stop.abort();
  }, [project, shown, client]);
  // Another link was followed, or the browser went back: the form shows its question.
  const [taken, setTaken] = useState(shown);
  if (shown !== taken) {
    setTaken(shown);
    if (comparison && JSON.stringify(bodyOf(draft)) !== JSON.stringify(bodyOf(draftOf(comparison)))) {
      setDraft(draftOf(comparison));
    }
  }

  const ask = useMutation({
    mutationFn: (body: Schemas["ComparisonIn"]) => compare(project, body),
    onSuccess: (made) => {
      client.setQueryData(comparisonQuery(project, made.id).queryKey, made);
      void client.invalidateQueries({ queryKey: comparisonsQuery(project).queryKey });
      void navigate({ search: { c: made.id }, resetScroll: false });
    },
  });
  const send = (next: Draft) => {
    setDraft(next);
    if (mayRun && next.question.trim() && next.columns.length) ask.mutate(bodyOf(next));
  };
  const change = (key: number, to: Partial<Column>): Draft => ({
    ...draft,
    columns: draft.columns.map((column) => (column.key === key ? { ...column, ...to } : column)),
  });

  if (!targets.length) {
    return (
      <Empty
        title="No model to query yet"
        action={
          <LinkButton component="a" to="/p/$project/launch" params={{ project }} search={{}}>
            Launch a recipe
          </LinkButton>
        }
      >
        Train a policy, or register an OpenAI-compatible endpoint under{" "}
        <Link underline="always" to="/p/$project/models" params={{ project }}>
          Models
        </Link>
        .
      </Empty>
    );
  }
  const steered = draft.columns.find(
    (column) => targets.find((one) => one.value === column.target)?.attributes,
  );
  return (
    <Stack gap="lg">
      <PromptCard
        project={project}
        draft={draft}
        rewards={models.filter((model) => model.role === "reward").map((model) => model.name)}
        onSearchReward={onSearchModel}
        comparison={comparison}
        asks={mayRun}
        asking={ask.isPending}
        error={ask.error}
        onDraft={setDraft}
        onSend={() => send(draft)}
      />
      <SimpleGrid cols={{ base: 1, sm: 2, lg: Math.min(4, Math.max(3, draft.columns.length)) }} spacing="md">
        {draft.columns.map((column, place) => {
          const answer = comparison?.columns[place];
          const fits =
            answer &&
            targetOf(answer) === column.target &&
            (answer.score ?? null) === column.score &&
            (answer.decoding.guidance ?? 1) === column.guidance;
          return (
            <AnswerColumn
              key={column.key}
              column={column}
              answer={fits ? answer : undefined}
              targets={targets}
              onSearchTarget={onSearchModel}
              steers={mayRun}
              onChange={(to) => setDraft(change(column.key, to))}
              onSteer={(to) => send(change(column.key, to))}
              onRemove={
                draft.columns.length > 1
                  ? () => setDraft({ ...draft, columns: draft.columns.filter((one) => one !== column) })
                  : undefined
              }
              onContinue={(text) =>
                setDraft({
                  ...draft,
                  history: [
                    ...draft.history,
                    { role: "user", content: draft.question },
                    { role: "assistant", content: text },
                  ],
                  question: "",
                })
              }
            />
          );
        })}
      </SimpleGrid>
      {draft.columns.length < MOST_COLUMNS && (
        <Button
          variant="default"
          leftSection={<IconPlus size={16} />}
          w="max-content"
          onClick={() => {
            const last = draft.columns.at(-1);
            const column = newColumn(last?.target ?? targets[0]!.value, last?.score ?? null);
            setDraft({ ...draft, columns: [...draft.columns, { ...last, ...column }] });
          }}
        >
          Add a column
        </Button>
      )}
      {steered?.target.startsWith("model:") && (
        <CurveCard
          key={steered.target}
          project={project}
          model={steered.target.slice("model:".length)}
          reward={draft.reward}
          attributes={targets.find((one) => one.value === steered.target)!.attributes!}
          scale={
            (models.find((model) => `model:${model.name}` === steered.target)?.info
              .score_scale as ScoreScale) ?? null
          }
        />
      )}
      <Earlier project={project} shown={shown} />
    </Stack>
  );
}

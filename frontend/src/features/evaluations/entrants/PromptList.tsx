import { Badge, Button, Card, Group, Select, Stack, Text } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import {
  type Evaluation,
  type EvaluationPrompt,
  evaluationPromptsQuery,
  type PromptFilters,
  wholePrompt,
} from "../../../api/evaluation/evaluations";
import { Empty, Loaded } from "../../../shared/Feedback";
import { count, percent } from "../../../shared/format/format";
import { Link } from "../../../shared/links";
import { TextViewSwitch } from "../../../shared/text/markdown/TextViewSwitch";
import { ShownInPart } from "../../../shared/text/ShownInPart";
import { PromptAnswer, PromptReference, PromptText } from "../PromptParts";
import { Section } from "../parts";

const route = getRouteApi("/p/$project/evaluations/$evaluation");

/** Prompts, each with the answers of all entrants side by side. */
export function PromptList({ project, evaluation }: { project: string; evaluation: Evaluation }) {
  const { seen, category } = route.useSearch();
  const navigate = route.useNavigate();
  const filters: PromptFilters = { seen: seen && seen === "yes", category };
  const query = useInfiniteQuery(evaluationPromptsQuery(project, evaluation.id, filters));
  const narrow = (change: { seen?: "yes" | "no"; category?: string }) =>
    void navigate({
      search: (known) => ({ ...known, tab: "answers", ...change }),
      replace: true,
      resetScroll: false,
    });
  const items = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Section
      title="Prompts and answers"
      actions={
        <>
          <TextViewSwitch />
          {evaluation.categories.length > 1 && (
            <Select
              size="xs"
              aria-label="Category"
              placeholder="any category"
              data={evaluation.categories}
              value={category ?? null}
              clearable
              onChange={(value) => narrow({ category: value ?? undefined })}
            />
          )}
          <Select
            size="xs"
            aria-label="Seen in training"
            placeholder="seen in training or not"
            data={[
              { value: "yes", label: "seen in training" },
              { value: "no", label: "not seen in training" },
            ]}
            value={seen ?? null}
            clearable
            onChange={(value) => narrow({ seen: (value as "yes" | "no" | null) ?? undefined })}
          />
        </>
      }
    >
      <Loaded query={query}>
        {() =>
          items.length ? (
            <Stack>
              {items.map((prompt) => (
                <PromptCard key={prompt.position} project={project} evaluation={evaluation} prompt={prompt} />
              ))}
              {query.hasNextPage && (
                <Button
                  variant="default"
                  style={{ alignSelf: "center" }}
                  loading={query.isFetchingNextPage}
                  onClick={() => void query.fetchNextPage()}
                >
                  Show more ({count(items.length)} of {count(evaluation.prompts)} prompts are shown)
                </Button>
              )}
            </Stack>
          ) : (
            <Empty title="No matching prompts">
              {seen === "yes"
                ? "None of the prompts was found in training data."
                : "Choose another category, or all of them."}
            </Empty>
          )
        }
      </Loaded>
    </Section>
  );
}

function PromptCard({
  project,
  evaluation,
  prompt,
}: {
  project: string;
  evaluation: Evaluation;
  prompt: EvaluationPrompt;
}) {
  const of = (name: string) =>
    prompt.responses.filter((one) => one.entrant === name).sort((a, b) => a.sample - b.sample);
  return (
    <Card
      withBorder
      p="sm"
      component="article"
      aria-label={`Prompt ${prompt.position + 1}`}
      id={`prompt-${prompt.position}`}
      className="evaluation-prompt"
    >
      <Group gap="xs" mb={4}>
        <Text size="xs" c="dimmed">
          {prompt.position + 1} · {prompt.question_id}
        </Text>
        {prompt.category && <Badge color="gray">{prompt.category}</Badge>}
        {prompt.seen && (
          <Badge color="orange" className="state-badge">
            seen in training
          </Badge>
        )}
      </Group>
      {prompt.seen && (
        <Text size="xs" c="dimmed" mb={4}>
          {prompt.seen.match === "exact" ? "The same as" : `${percent(prompt.seen.overlap, 0)} of it is in`}{" "}
          row {count(prompt.seen.row)} of{" "}
          <Link
            size="xs"
            underline="always"
            to="/p/$project/datasets/$dataset"
            params={{ project, dataset: prompt.seen.dataset }}
            search={{ row: prompt.seen.row }}
          >
            {prompt.seen.dataset}
          </Link>
        </Text>
      )}
      {(prompt.cut || prompt.responses.some((one) => one.cut)) && (
        <ShownInPart
          whole={wholePrompt(project, evaluation.id, prompt.position)}
          name={`${evaluation.name}-prompt-${prompt.position + 1}.json`}
        />
      )}
      <PromptText prompt={prompt} />
      <PromptReference prompt={prompt} />
      <div className="evaluation-answers">
        {evaluation.entrants.map((entrant) => (
          <PromptAnswer
            key={entrant.id}
            name={entrant.name}
            asked={entrant.score}
            responses={of(entrant.name)}
          />
        ))}
      </div>
    </Card>
  );
}

import { ActionIcon, Badge, Card, Group, Stack, Text, Title } from "@mantine/core";
import { IconChevronLeft, IconChevronRight } from "@tabler/icons-react";
import { getRouteApi } from "@tanstack/react-router";
import type { Evaluation } from "../../../api/evaluation/evaluations";
import { wholePrompt } from "../../../api/evaluation/evaluations";
import type { ItemDetail } from "../../../api/evaluation/items";
import { count } from "../../../shared/format/format";
import { SOURCES } from "../../../shared/report/Reservations";
import type { ItemsSearch } from "../../../shared/search";
import { TextViewSwitch } from "../../../shared/text/markdown/TextViewSwitch";
import { ShownInPart } from "../../../shared/text/ShownInPart";
import { PromptAnswer, PromptReference, PromptText } from "../PromptParts";
import { AnswerTrace } from "./AnswerTrace";
import { ItemRankings, ranksOf } from "./ItemRankings";
import { ItemVerdicts } from "./ItemVerdicts";
import { COLORS, keyOf, preferred } from "./sources";

const route = getRouteApi("/p/$project/evaluations/$evaluation");

interface Properties {
  project: string;
  evaluation: Evaluation;
  found: ItemDetail;
  filters: ItemsSearch;
  onStep: (to: "previous" | "next") => void;
}

/** One prompt: both answers side by side, what each source prefers, every verdict with its text, people's ranks. */
export function ItemView({ project, evaluation, found, filters, onStep }: Properties) {
  const { a, b } = filters;
  const { prompt } = found;
  const { traced, sample } = route.useSearch();
  const navigate = route.useNavigate();
  // In the address, so that it stays open when the page's layout changes, and can be sent to others.
  const trace = (entrant?: string, which?: number) =>
    void navigate({
      search: (known) => ({ ...known, traced: entrant, sample: which || undefined }),
      replace: true,
      resetScroll: false,
    });
  const pair = a && b ? [a, b] : null;
  const first = pair ?? evaluation.entrants.map((one) => one.name);
  const others = evaluation.entrants.filter((one) => !first.includes(one.name));
  const answer = (name: string) => {
    const entrant = evaluation.entrants.find((one) => one.name === name);
    return (
      <PromptAnswer
        key={name}
        name={name}
        asked={entrant?.score ?? null}
        onTrace={(which) => trace(name, which)}
        spans={found.rankings.flatMap((one) => one.spans).filter((span) => span.entrant === name)}
        responses={prompt.responses
          .filter((one) => one.entrant === name)
          .sort((one, other) => one.sample - other.sample)}
      >
        {ranksOf(found.rankings, name).map((line) => (
          <Text key={line} size="xs" c="dimmed">
            {line}
          </Text>
        ))}
      </PromptAnswer>
    );
  };
  return (
    <article aria-label={`Prompt ${prompt.position + 1}`}>
      <Stack gap="md">
        <Group justify="space-between" wrap="nowrap" align="flex-start">
          <Group gap="xs">
            <Title order={2} size="h4">
              Prompt {prompt.position + 1}
            </Title>
            <Text size="sm" c="dimmed">
              id {prompt.question_id}
            </Text>
            {prompt.category && <Badge color="gray">{prompt.category}</Badge>}
            {prompt.seen && (
              <Badge color="orange" className="state-badge">
                seen in training
              </Badge>
            )}
          </Group>
          <Group gap={6} justify="flex-end">
            <TextViewSwitch />
            <Text size="sm" c="dimmed" style={{ whiteSpace: "nowrap" }}>
              {found.number === null ? "not among them" : `${count(found.number)} of ${count(found.total)}`}
            </Text>
            <ActionIcon
              variant="default"
              aria-label="Previous item (k)"
              disabled={found.previous === null}
              onClick={() => onStep("previous")}
            >
              <IconChevronLeft size={16} />
            </ActionIcon>
            <ActionIcon
              variant="default"
              aria-label="Next item (j)"
              disabled={found.next === null}
              onClick={() => onStep("next")}
            >
              <IconChevronRight size={16} />
            </ActionIcon>
          </Group>
        </Group>
        {pair && found.outcomes.length > 0 && (
          <Group gap="xs" component="ul" aria-label="What each source prefers" p={0} m={0}>
            {found.outcomes.map((one) => (
              <li key={keyOf(one)} style={{ listStyle: "none" }}>
                <Badge color={COLORS[one.outcome]} variant="light" className="state-badge" size="lg">
                  {SOURCES[one.by]} {one.source}: {preferred(one, pair[0]!, pair[1]!)}
                </Badge>
              </li>
            ))}
          </Group>
        )}
        <Card withBorder p="sm">
          {(prompt.cut || prompt.responses.some((one) => one.cut)) && (
            <ShownInPart
              whole={wholePrompt(project, evaluation.id, prompt.position)}
              name={`${evaluation.name}-prompt-${prompt.position + 1}.json`}
            />
          )}
          <PromptText prompt={prompt} />
          <PromptReference prompt={prompt} />
        </Card>
        <div className={pair ? "items-pair" : "evaluation-answers"}>{first.map(answer)}</div>
        {others.length > 0 && (
          <details>
            <summary className="evaluation-summary">
              {count(others.length)} other {others.length === 1 ? "answer" : "answers"}
            </summary>
            <div className="evaluation-answers">{others.map((one) => answer(one.name))}</div>
          </details>
        )}
        <ItemVerdicts project={project} evaluation={evaluation} found={found} />
        {traced && evaluation.entrants.some((one) => one.name === traced) && (
          <AnswerTrace
            project={project}
            evaluation={evaluation.id}
            position={prompt.position}
            entrant={traced}
            sample={sample ?? 0}
            onClose={() => trace()}
          />
        )}
        <ItemRankings rankings={found.rankings} names={first} />
      </Stack>
    </article>
  );
}

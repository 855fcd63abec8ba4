import "../ranking.css";
import { Alert, Button, Group, SegmentedControl, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../../../api/client";
import { decide, reviewKey, reviewQuery, type Review, type ReviewItem } from "../../../api/evaluation/review";
import { Empty, Failure, LoadedPage } from "../../../shared/Feedback";
import { count, percent } from "../../../shared/format/format";
import { Page } from "../../../shared/Page";
import { TaskView } from "../TaskView";
import { drop } from "../work/work";
import { Decided } from "./Decided";
import { Opinions } from "./Opinions";

const route = getRouteApi("/p/$project/rank/$campaign/review");

/** Where a reviewer decides on what annotators disagree about. */
export function ReviewPage() {
  const { project, campaign } = route.useParams();
  const query = useQuery(reviewQuery(project, campaign));
  const [tab, setTab] = useState("open");
  const [changed, setChanged] = useState<ReviewItem | null>(null);
  return (
    <LoadedPage title="Review" query={query}>
      {(review) => (
        <Page
          title={`Review ${review.campaign}`}
          about="Annotators disagree on these items. Your decision counts instead; what they submitted is kept next to it."
        >
          <Group justify="space-between">
            <SegmentedControl
              size="xs"
              aria-label="Which items"
              value={tab}
              onChange={(value) => {
                setTab(value);
                setChanged(null);
              }}
              data={[
                { value: "open", label: `To decide (${count(review.open)})` },
                { value: "decided", label: `Decided (${count(review.decided)})` },
              ]}
            />
          </Group>
          {changed ? (
            <Deciding
              key={changed.id}
              project={project}
              campaign={campaign}
              review={review}
              item={changed}
              onDone={() => setChanged(null)}
            />
          ) : tab === "open" ? (
            <Open project={project} campaign={campaign} review={review} />
          ) : (
            <Decided project={project} campaign={campaign} task={review.task_type} onChange={setChanged} />
          )}
        </Page>
      )}
    </LoadedPage>
  );
}

interface Properties {
  project: string;
  campaign: string;
  review: Review;
}

function Open({ project, campaign, review }: Properties) {
  // Left for later in this visit.
  const [passed, setPassed] = useState<string[]>([]);
  const item = review.items.find(({ id }) => !passed.includes(id)) ?? review.items[0];
  if (!item) {
    return (
      <Empty title="Nothing to decide">
        Items appear here when two annotators of a prompt submit different opinions.
      </Empty>
    );
  }
  return (
    <Deciding
      key={item.id}
      project={project}
      campaign={campaign}
      review={review}
      item={item}
      onLater={
        review.items.length > 1
          ? () => setPassed((known) => (known.length + 1 < review.items.length ? [...known, item.id] : []))
          : undefined
      }
    />
  );
}

interface DecidingProperties extends Properties {
  item: ReviewItem;
  onLater?: () => void;
  onDone?: () => void;
}

function Deciding({ project, campaign, review, item, onLater, onDone }: DecidingProperties) {
  const client = useQueryClient();
  const send = useMutation({
    mutationFn: (body: Schemas["Annotation"]) => decide(project, campaign, item.id, body),
    onSuccess: async () => {
      drop(item.id);
      await client.invalidateQueries({ queryKey: reviewKey(project, campaign) });
      onDone?.();
    },
  });
  const inOrder = (values: Record<string, number>) => item.answers.map(({ key }) => values[key]!);
  const byCriterion = (values: Record<string, Record<string, number>>) =>
    Object.fromEntries(Object.entries(values).map(([name, given]) => [name, inOrder(given)]));
  const scored = review.task_type === "likert";
  return (
    <>
      <Group justify="space-between">
        <Text size="sm" c="dimmed">
          Disagreement: {percent(item.disagreement, 0)}
        </Text>
        <Group gap="xs">
          {onLater && (
            <Button size="compact-sm" variant="default" onClick={onLater}>
              Leave for later
            </Button>
          )}
          {onDone && (
            <Button size="compact-sm" variant="default" onClick={onDone}>
              Cancel
            </Button>
          )}
        </Group>
      </Group>
      <Opinions
        task={review.task_type}
        item={item}
        pending={send.isPending}
        onTake={(opinion) =>
          send.mutate({
            ranks: opinion.ranks && inOrder(opinion.ranks),
            criteria_ranks: scored ? {} : byCriterion(opinion.criteria_ranks),
            scores: byCriterion(opinion.scores),
            both_bad: opinion.both_bad,
            correction: opinion.correction,
            replies: opinion.replies ?? {},
            comment: opinion.comment,
          })
        }
      />
      {send.error && <Failure error={send.error} />}
      <Alert variant="light" color="gray" p="xs">
        Take one of these opinions, or decide yourself:
      </Alert>
      <TaskView
        project={project}
        task={{
          id: item.id,
          task_type: review.task_type,
          prompt: item.prompt,
          answers: item.answers,
          criteria: review.criteria,
          questions: review.questions,
          span_labels: [],
          suggestion: null,
          draft: null,
          locked_until: "",
        }}
        queue={{
          submit: (
            _,
            { flag: _flag, spans: _spans, suggestion_visible: _visible, seconds: _seconds, ...annotation },
          ) => send.mutate(annotation),
        }}
        instructions={review.instructions}
        flagged={item.annotators.flatMap((opinion) => opinion.spans ?? [])}
        local
      />
    </>
  );
}

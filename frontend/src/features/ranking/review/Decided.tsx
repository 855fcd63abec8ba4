import { Button, Card, Group, Stack, Text } from "@mantine/core";
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import {
  decisionsQuery,
  reviewKey,
  withdrawDecision,
  type Review,
  type ReviewItem,
} from "../../../api/evaluation/review";
import { Empty, Failure, Loaded } from "../../../shared/Feedback";
import { Opinions } from "./Opinions";

interface Properties {
  project: string;
  campaign: string;
  task: Review["task_type"];
  onChange: (item: ReviewItem) => void;
}

/** Items that were decided, with what annotators had submitted. */
export function Decided({ project, campaign, task, onChange }: Properties) {
  const client = useQueryClient();
  const query = useInfiniteQuery(decisionsQuery(project, campaign));
  const withdraw = useMutation({
    mutationFn: (item: string) => withdrawDecision(project, campaign, item),
    onSuccess: () => client.invalidateQueries({ queryKey: reviewKey(project, campaign) }),
  });
  return (
    <Loaded query={query} rows={4}>
      {({ pages }) => {
        const items = pages.flatMap((page) => page.items);
        if (!items.length) return <Empty title="No decisions yet">Decisions appear here.</Empty>;
        return (
          <Stack>
            {withdraw.error && <Failure error={withdraw.error} />}
            {items.map((item) => (
              <Card key={item.id} withBorder component="article" aria-label="Decided item">
                <Stack gap="xs">
                  <Text size="sm" fw={600} lineClamp={3}>
                    {item.prompt.messages.at(-1)?.content}
                  </Text>
                  <Opinions task={task} item={item} />
                  <Group gap="xs" justify="flex-end">
                    <Button size="compact-sm" variant="default" onClick={() => onChange(item)}>
                      Change
                    </Button>
                    <Button
                      size="compact-sm"
                      variant="subtle"
                      color="red"
                      loading={withdraw.isPending}
                      onClick={() => withdraw.mutate(item.id)}
                    >
                      Withdraw
                    </Button>
                  </Group>
                </Stack>
              </Card>
            ))}
            {query.hasNextPage && (
              <Group justify="center">
                <Button
                  variant="default"
                  loading={query.isFetchingNextPage}
                  onClick={() => void query.fetchNextPage()}
                >
                  Show more
                </Button>
              </Group>
            )}
          </Stack>
        );
      }}
    </Loaded>
  );
}

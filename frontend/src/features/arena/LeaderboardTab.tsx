import { Alert, Button, Group, SegmentedControl, Select, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { IconDownload } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useMay } from "../../api/accounts/session";
import {
  type Arena,
  arenaKeys,
  battlesFile,
  closeArena,
  type Leaderboard,
  leaderboardQuery,
  makePairs,
} from "../../api/arena/arenas";
import { datasetsQuery } from "../../api/datasets/datasets";
import { Empty, Failure, Loading } from "../../shared/Feedback";
import { count, counted } from "../../shared/format/format";
import { DataTable } from "../../shared/tables/DataTable";

type Rated = Leaderboard["models"][number];

/** Ratings with their intervals: of all votes or one category's, and with control for style. */
export function LeaderboardTab({ project, arena }: { project: string; arena: Arena }) {
  const [category, setCategory] = useState<string | null>(null);
  const [styled, setStyled] = useState(false);
  const query = useQuery(leaderboardQuery(project, arena.name, category));
  const board = query.data;
  const shown = styled ? board?.style_controlled : board;
  return (
    <Stack gap="md">
      <Group justify="space-between" align="flex-end" gap="sm">
        <Group gap="sm" align="flex-end">
          {arena.categories.length > 0 && (
            <Select
              label="Category"
              placeholder="all votes"
              data={arena.categories.map((name) => ({
                value: name,
                label: `${name} (${count(board?.by_category[name] ?? 0)})`,
              }))}
              value={category}
              onChange={setCategory}
              clearable
            />
          )}
          <SegmentedControl
            aria-label="Style"
            data={[
              { value: "plain", label: "As voted" },
              { value: "styled", label: "Style controlled" },
            ]}
            value={styled ? "styled" : "plain"}
            onChange={(to) => setStyled(to === "styled")}
          />
        </Group>
        <Actions project={project} arena={arena} />
      </Group>
      {query.error && <Failure error={query.error} retry={() => void query.refetch()} />}
      {query.isPending && <Loading rows={4} />}
      {board && board.n === 0 && (
        <Empty title="No votes yet">
          {category === null
            ? "The leaderboard starts with the first vote."
            : `There are no battles in the category ${category}.`}
        </Empty>
      )}
      {board && board.n > 0 && (
        <>
          {shown?.why && (
            <Alert color="gray" title="There are no ratings yet">
              {shown.why}
            </Alert>
          )}
          {!!shown?.models.length && <Ratings models={shown.models} />}
          <Text size="sm" c="dimmed">
            {facts(board, arena, styled)}
          </Text>
        </>
      )}
    </Stack>
  );
}

function facts(board: Leaderboard, arena: Arena, styled: boolean): string {
  const parts = [counted(board.n, "vote")];
  if (arena.repeats) parts.push(`${count(arena.repeats)} repeats do not count`);
  parts.push("Bradley-Terry with bootstrap 95% intervals");
  if (styled && board.style_controlled) {
    const weights = Object.entries(board.style_controlled.coefficients ?? {});
    parts.push(...weights.map(([name, weight]) => `${name} ${weight.toFixed(2)}`));
  }
  if (board.unrated?.length) parts.push(`not yet comparable: ${board.unrated.join(", ")}`);
  return parts.join(" · ");
}

function Ratings({ models }: { models: Rated[] }) {
  const interval = ({ low, high }: Rated) =>
    low == null || high == null ? "–" : `${low.toFixed(0)} to ${high.toFixed(0)}`;
  return (
    <DataTable
      label="Leaderboard"
      rows={models}
      keyOf={(one) => one.model}
      below={(one) => `95%: ${interval(one)}; ${one.wins} won, ${one.ties} tied, ${one.losses} lost`}
      columns={[
        { title: "Entrant", cell: (one) => <span style={{ overflowWrap: "anywhere" }}>{one.model}</span> },
        { title: "Rating", right: true, cell: (one) => one.rating.toFixed(0) },
        { title: "95% interval", right: true, wide: true, cell: interval },
        { title: "Elo", right: true, wide: true, cell: (one) => one.elo?.toFixed(0) ?? "–" },
        { title: "Votes", right: true, cell: (one) => count(one.n) },
        { title: "Won", right: true, wide: true, cell: (one) => count(one.wins) },
        { title: "Tied", right: true, wide: true, cell: (one) => count(one.ties) },
        { title: "Lost", right: true, wide: true, cell: (one) => count(one.losses) },
      ]}
    />
  );
}

function Actions({ project, arena }: { project: string; arena: Arena }) {
  const client = useQueryClient();
  const may = { write: useMay(project, "write"), run: useMay(project, "run") };
  const pairs = useMutation({
    mutationFn: () => makePairs(project, arena.name),
    onSuccess: (made) => {
      const left = Object.values((made.origin.left_out ?? {}) as Record<string, number>);
      const out = left.reduce((sum, number) => sum + number, 0);
      notifications.show({
        message: `${made.name}: ${counted(made.rows, "pair")}, ${counted(out, "vote")} left out`,
      });
      return client.invalidateQueries({ queryKey: datasetsQuery(project).queryKey });
    },
    onError: (error) => notifications.show({ color: "red", message: error.message }),
  });
  const close = useMutation({
    mutationFn: () => closeArena(project, arena.name),
    onSuccess: () => client.invalidateQueries({ queryKey: arenaKeys.all(project) }),
    onError: (error) => notifications.show({ color: "red", message: error.message }),
  });
  return (
    <Group gap="xs">
      <Button
        component="a"
        href={battlesFile(project, arena.name)}
        download
        size="xs"
        variant="default"
        leftSection={<IconDownload size={14} />}
      >
        Battles
      </Button>
      {may.write && (
        <Button size="xs" variant="default" loading={pairs.isPending} onClick={() => pairs.mutate()}>
          Make preference pairs
        </Button>
      )}
      {may.run && arena.state === "open" && (
        <Button size="xs" variant="default" loading={close.isPending} onClick={() => close.mutate()}>
          Close the arena
        </Button>
      )}
    </Group>
  );
}

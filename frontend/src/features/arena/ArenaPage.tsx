import { Badge, Card, Group, Select, Stack, Tabs, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "../../api/accounts/session";
import { type Arena, arenasQuery } from "../../api/arena/arenas";
import { battleQuery, beginBattle } from "../../api/arena/battles";
import { Empty, Failure, LoadedPage } from "../../shared/Feedback";
import { Link } from "../../shared/links";
import { Page } from "../../shared/Page";
import { BattleView } from "./BattleView";
import { LeaderboardTab } from "./LeaderboardTab";
import { NewArena } from "./NewArena";
import { PromptBox } from "./PromptBox";
import { RefusedVotes } from "./WaitingVotes";

const route = getRouteApi("/p/$project/arena");

/** Free prompts to two or more policies without names, votes, and the leaderboard of them. */
export function ArenaPage() {
  const { project } = route.useParams();
  const query = useQuery(arenasQuery(project));
  return (
    <LoadedPage title="Arena" query={query}>
      {({ items }) => <Arenas project={project} arenas={items} />}
    </LoadedPage>
  );
}

function Arenas({ project, arenas }: { project: string; arenas: Arena[] }) {
  const search = route.useSearch();
  const navigate = useNavigate();
  const may = { read: useMay(project, "read"), run: useMay(project, "run"), rank: useMay(project, "rank") };
  const arena = arenas.find((one) => one.name === search.a) ?? arenas.find(isOpen) ?? arenas[0];
  const go = (to: { a?: string; b?: string; tab?: string }) =>
    void navigate({ to: "/p/$project/arena", params: { project }, search: to });
  const tab = may.read && (search.tab === "leaderboard" || !may.rank) ? "leaderboard" : "battle";
  return (
    <Page
      title="Arena"
      about={
        <>
          Ask several policies the same question, and vote for the best answer. Their names are shown after
          the vote.
          {!may.read && (
            <>
              {" "}
              <Link to="/p/$project/rank" params={{ project }}>
                Rank answers instead
              </Link>
            </>
          )}
        </>
      }
      actions={may.run && <NewArena project={project} onMade={(made) => go({ a: made.name })} />}
    >
      <RefusedVotes />
      {!arena ? (
        <Empty title="No arena yet">
          {may.run
            ? "Choose the models and endpoints that compete in it."
            : "Engineers and owners of the project can create arenas."}
        </Empty>
      ) : (
        <>
          {arenas.length > 1 && (
            <Select
              label="Arena"
              data={arenas.map((one) => one.name)}
              value={arena.name}
              allowDeselect={false}
              maw={360}
              onChange={(name) => name && go({ a: name, tab: search.tab })}
            />
          )}
          {may.read ? (
            <Tabs
              value={tab}
              keepMounted={false}
              onChange={(to) =>
                go({ a: arena.name, b: search.b, tab: to === "leaderboard" ? to : undefined })
              }
            >
              <Tabs.List mb="md">
                {may.rank && <Tabs.Tab value="battle">Battle</Tabs.Tab>}
                <Tabs.Tab value="leaderboard">Leaderboard</Tabs.Tab>
              </Tabs.List>
              {may.rank && (
                <Tabs.Panel value="battle">
                  <BattleTab project={project} arena={arena} battle={search.b} onGo={go} />
                </Tabs.Panel>
              )}
              <Tabs.Panel value="leaderboard">
                <LeaderboardTab project={project} arena={arena} />
              </Tabs.Panel>
            </Tabs>
          ) : (
            <BattleTab project={project} arena={arena} battle={search.b} onGo={go} />
          )}
        </>
      )}
    </Page>
  );
}

const IN_WORDS: Record<number, string> = { 2: "two", 3: "three", 4: "four" };

const isOpen = (arena: Arena) => arena.state === "open";

interface BattleProperties {
  project: string;
  arena: Arena;
  battle: string | undefined;
  onGo: (to: { a?: string; b?: string }) => void;
}

function BattleTab({ project, arena, battle, onGo }: BattleProperties) {
  const client = useQueryClient();
  const [category, setCategory] = useState<string | null>(null);
  const [prompt, setPrompt] = useState("");
  const begin = useMutation({
    mutationFn: (prompt: string) => beginBattle(project, arena.name, { prompt, category }),
    onSuccess: (made) => {
      client.setQueryData(battleQuery(project, made.id).queryKey, made);
      onGo({ a: arena.name, b: made.id });
    },
  });
  if (battle) {
    return <BattleView key={battle} project={project} id={battle} onNext={() => onGo({ a: arena.name })} />;
  }
  if (!isOpen(arena)) {
    return (
      <Empty title="This arena is closed">
        No new battles can be started. Pending votes are still accepted.
      </Empty>
    );
  }
  return (
    <Card withBorder>
      <Stack gap="xs">
        <Group gap="xs">
          <Text fw={600}>{arena.name}</Text>
          <Badge color="gray" className="state-badge" tt="none">
            {arena.entrants.length} entrants
          </Badge>
        </Group>
        <PromptBox
          label="Prompt"
          placeholder={`Ask ${IN_WORDS[arena.sides]} of them anything. Ctrl+Enter sends.`}
          sends={arena.sides === 2 ? "Ask both" : "Ask all"}
          asking={begin.isPending}
          prompt={prompt}
          onPrompt={setPrompt}
          onSend={begin.mutateAsync}
          beside={
            arena.categories.length > 0 && (
              <Select
                aria-label="Category"
                placeholder="Category"
                data={arena.categories}
                value={category}
                onChange={setCategory}
                clearable
                mr="auto"
              />
            )
          }
        />
        {begin.error && <Failure error={begin.error} />}
      </Stack>
    </Card>
  );
}

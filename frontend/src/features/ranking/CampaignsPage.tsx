import "./ranking.css";
import { Badge, Card, Group, Progress, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { arenasQuery } from "../../api/arena/arenas";
import { campaignsToRankQuery, type OpenCampaign } from "../../api/evaluation/ranking";
import { Empty, LoadedPage } from "../../shared/Feedback";
import { count } from "../../shared/format/format";
import { Link, LinkButton } from "../../shared/links";
import { Page } from "../../shared/Page";

const route = getRouteApi("/p/$project/rank");

/** What there is to rank for the person who is signed in. */
export function CampaignsPage() {
  const { project } = route.useParams();
  const query = useQuery(campaignsToRankQuery(project));
  const arenas = useQuery(arenasQuery(project));
  const open = arenas.data?.items.some((arena) => arena.state === "open");
  return (
    <LoadedPage title="Rank" query={query}>
      {({ campaigns }) => (
        <Page
          title="Rank"
          about={
            <>
              Put answers in order, the best first. Who wrote them is hidden.
              {open && (
                <>
                  {" "}
                  <Link to="/p/$project/arena" params={{ project }}>
                    Or ask two policies yourself, in the arena.
                  </Link>
                </>
              )}
            </>
          }
        >
          {campaigns.length === 0 && (
            <Empty title="Nothing is waiting for you">Requests for rankings appear here by themselves.</Empty>
          )}
          <div className="rank-campaigns">
            {campaigns.map((campaign) => (
              <CampaignCard key={campaign.id} project={project} campaign={campaign} />
            ))}
          </div>
        </Page>
      )}
    </LoadedPage>
  );
}

function CampaignCard({ project, campaign }: { project: string; campaign: OpenCampaign }) {
  const { mine_done: done, left_for_me: left } = campaign;
  return (
    <Card withBorder component="section" aria-label={campaign.name}>
      <Stack gap="xs" h="100%">
        <Group justify="space-between">
          <Text fw={600} style={{ overflowWrap: "anywhere" }}>
            {campaign.name}
          </Text>
          {campaign.state !== "open" && (
            <Badge color="gray" className="state-badge">
              {campaign.state}
            </Badge>
          )}
        </Group>
        {campaign.instructions && (
          <Text size="sm" c="dimmed" lineClamp={3} style={{ whiteSpace: "pre-wrap" }}>
            {campaign.instructions}
          </Text>
        )}
        <Progress mt="auto" value={done + left ? (100 * done) / (done + left) : 0} aria-label="Done by you" />
        <Group justify="space-between">
          <Text size="sm" c="dimmed">
            {count(done)} done, {count(left)} left for you; {count(campaign.answers)} answers an item
          </Text>
          <LinkButton
            component="a"
            size="xs"
            to="/p/$project/rank/$campaign"
            params={{ project, campaign: campaign.id }}
            variant={left && campaign.state === "open" ? "filled" : "default"}
          >
            {left && campaign.state === "open" ? (done ? "Continue" : "Start") : "Look"}
          </LinkButton>
        </Group>
      </Stack>
    </Card>
  );
}

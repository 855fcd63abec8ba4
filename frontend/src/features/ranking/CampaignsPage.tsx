import "./ranking.css";
import { Badge, Button, Card, Group, Progress, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useMay } from "../../api/accounts/session";
import { arenasQuery } from "../../api/arena/arenas";
import { campaignsToRankQuery, TASK_NAMES, type OpenCampaign } from "../../api/evaluation/ranking";
import { NewCampaign } from "../../shared/campaigns/NewCampaign";
import { Empty, LoadedPage } from "../../shared/Feedback";
import { count, counted } from "../../shared/format/format";
import { Link, LinkButton } from "../../shared/links";
import { Page } from "../../shared/Page";

const route = getRouteApi("/p/$project/rank");

/** What there is to annotate for the person who is signed in. */
export function CampaignsPage() {
  const { project } = route.useParams();
  const query = useQuery(campaignsToRankQuery(project));
  const arenas = useQuery(arenasQuery(project));
  const mayWrite = useMay(project, "write");
  const [making, make] = useDisclosure();
  const begin = mayWrite && <Button onClick={make.open}>New campaign</Button>;
  const open = arenas.data?.items.some((arena) => arena.state === "open");
  return (
    <LoadedPage title="Annotate" query={query}>
      {({ campaigns }) => (
        <Page
          title="Annotate"
          actions={campaigns.length > 0 && begin}
          about={
            <>
              Rank, choose, score or correct answers. Their authors are hidden.
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
            <Empty title="Nothing is waiting for you" action={begin}>
              Requests appear here automatically.
              {mayWrite && " A campaign asks people about the answers of an evaluation or a dataset."}
            </Empty>
          )}
          <div className="rank-campaigns">
            {campaigns.map((campaign) => (
              <CampaignCard key={campaign.id} project={project} campaign={campaign} />
            ))}
          </div>
          <NewCampaign project={project} opened={making} onClose={make.close} />
        </Page>
      )}
    </LoadedPage>
  );
}

function CampaignCard({ project, campaign }: { project: string; campaign: OpenCampaign }) {
  const { mine_done: done, left_for_me: left } = campaign;
  const mayReview = useMay(project, "review");
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
            {TASK_NAMES[campaign.task_type]}; {count(done)} done, {count(left)} left for you;{" "}
            {counted(campaign.answers, "answer")} an item
          </Text>
          <Group gap="xs">
            {mayReview && (
              <Link
                size="sm"
                to="/p/$project/rank/$campaign/review"
                params={{ project, campaign: campaign.id }}
              >
                Review
              </Link>
            )}
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
        </Group>
      </Stack>
    </Card>
  );
}

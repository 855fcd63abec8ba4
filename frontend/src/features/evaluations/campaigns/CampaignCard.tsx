import { Alert, Badge, Button, Card, Group, Modal, Progress, Stack, Text, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { Schemas } from "../../../api/client";
import { type Campaign, changeCampaign, rankingsFile } from "../../../api/evaluation/campaigns";
import { type Evaluation, evaluationKeys } from "../../../api/evaluation/evaluations";
import { TASK_NAMES } from "../../../api/evaluation/ranking";
import { useMay } from "../../../api/accounts/session";
import { DataTable, type Column } from "../../../shared/tables/DataTable";
import { Failure } from "../../../shared/Feedback";
import { count, counted, percent, seconds } from "../../../shared/format/format";
import { Link, LinkButton } from "../../../shared/links";
import { When } from "../../../shared/When";
import { EditCampaign } from "./EditCampaign";
import { FlagList } from "./FlagList";
import { GoldEditor } from "./GoldEditor";
import { InviteAnnotator } from "./InviteAnnotator";
import { MakeCorrections } from "./MakeCorrections";

type Annotator = Schemas["AnnotatorFigures"];
const COLOR = { open: "teal", paused: "yellow", closed: "gray" };

interface Properties {
  project: string;
  evaluation: Evaluation;
  campaign: Campaign;
}

/** One campaign: how far it is, who takes part, and what its owner can do. */
export function CampaignCard({ project, evaluation, campaign }: Properties) {
  const mayWrite = useMay(project, "write");
  const mayInvite = useMay(project, "admin");
  const mayRank = useMay(project, "rank");
  const mayReview = useMay(project, "review");
  const client = useQueryClient();
  const [inviting, invite] = useDisclosure();
  const [gold, golds] = useDisclosure();
  const [flags, flagged] = useDisclosure();
  const [correcting, corrections] = useDisclosure();
  const [editing, edit] = useDisclosure();
  const correction = campaign.task_type === "correction";
  const change = useMutation({
    mutationFn: (body: Schemas["CampaignChange"]) =>
      changeCampaign(project, evaluation.id, campaign.id, body),
    onSuccess: () => client.invalidateQueries({ queryKey: evaluationKeys.all(project) }),
  });
  const told = `${count(campaign.done_items)} of ${count(campaign.items)} prompts are done${campaign.overlap === 1 ? "" : ` by ${campaign.overlap} annotators`}`;
  const reports = campaign.annotators.reduce((sum, one) => sum + one.flagged + one.skipped, 0);
  return (
    <Card withBorder component="section" aria-label={`Campaign ${campaign.name}`}>
      <Stack gap="sm">
        <Group justify="space-between">
          <Group gap="xs">
            <Title order={3} size="h5">
              {campaign.name}
            </Title>
            <Badge color={COLOR[campaign.state]} className="state-badge">
              {campaign.state}
            </Badge>
            <Text size="sm" c="dimmed">
              {TASK_NAMES[campaign.task_type]}
            </Text>
          </Group>
          <Group gap="xs">
            {mayRank && campaign.state === "open" && (
              <Link
                size="sm"
                underline="always"
                to="/p/$project/rank/$campaign"
                params={{ project, campaign: campaign.id }}
              >
                Annotate some yourself
              </Link>
            )}
            {mayInvite && campaign.state !== "closed" && (
              <Button size="xs" onClick={invite.open}>
                Invite an annotator
              </Button>
            )}
            {mayWrite && (
              <States
                campaign={campaign}
                pending={change.isPending}
                onState={(state) => change.mutate({ state })}
              />
            )}
          </Group>
        </Group>
        {change.error && <Failure error={change.error} />}
        {campaign.warnings.map((warning) => (
          <Alert key={warning} color="orange" variant="light" p="xs">
            {warning}
          </Alert>
        ))}
        <div>
          <Progress
            value={campaign.items ? (100 * campaign.done_items) / campaign.items : 0}
            aria-label={`${campaign.name}: ${told}`}
          />
          <Text size="sm" mt={4}>
            {told}; {counted(campaign.rankings, "submission")} in all
            {campaign.adjudicated > 0 && `, ${count(campaign.adjudicated)} decided by a reviewer`}
            {campaign.skipped_by_all > 0 &&
              `, ${count(campaign.skipped_by_all)} prompts were skipped by everyone`}
            .
          </Text>
          <Text size="xs" c="dimmed">
            {campaign.entrants.join(", ")}
            {campaign.criteria.length > 0 && `; by ${campaign.criteria.map((one) => one.name).join(", ")}`}
            {campaign.questions.length > 0 && `; ${counted(campaign.questions.length, "question")}`}
            {campaign.judge !== null && `; suggestions by ${campaign.judge}`}
          </Text>
        </div>
        <Annotators campaign={campaign} />
        <Group gap="xs">
          {correction ? (
            mayWrite && (
              <Button
                size="compact-sm"
                variant="default"
                disabled={!campaign.rankings}
                onClick={corrections.open}
              >
                Make a dataset
              </Button>
            )
          ) : (
            <Button size="compact-sm" variant="default" onClick={golds.open}>
              Gold prompts ({count(campaign.gold_items)})
            </Button>
          )}
          {mayReview && campaign.disagreements + campaign.adjudicated > 0 && (
            <LinkButton
              component="a"
              size="compact-sm"
              variant={campaign.disagreements ? "light" : "default"}
              to="/p/$project/rank/$campaign/review"
              params={{ project, campaign: campaign.id }}
            >
              Disagreements ({count(campaign.disagreements)})
            </LinkButton>
          )}
          {campaign.annotators.length > 0 && (
            <LinkButton
              component="a"
              size="compact-sm"
              variant="default"
              to="/p/$project/evaluations/$evaluation/campaigns/$campaign"
              params={{ project, evaluation: evaluation.name, campaign: campaign.name }}
            >
              Quality
            </LinkButton>
          )}
          {campaign.rankings > 0 && (
            <Button
              component="a"
              size="compact-sm"
              variant="default"
              href={rankingsFile(project, evaluation.id, campaign.id)}
              download
            >
              Download
            </Button>
          )}
          <Button size="compact-sm" variant="default" onClick={flagged.open}>
            Flags and skips ({count(reports)})
          </Button>
          {mayWrite && campaign.state !== "closed" && (
            <Button size="compact-sm" variant="default" onClick={edit.open}>
              Settings
            </Button>
          )}
          {mayWrite && campaign.state !== "closed" && (
            <Button
              size="compact-sm"
              variant="default"
              loading={change.isPending}
              onClick={() => change.mutate({ overlap: campaign.overlap + 1 })}
            >
              One more annotator for each prompt
            </Button>
          )}
        </Group>
      </Stack>
      <Modal
        opened={inviting}
        onClose={invite.close}
        title={`Invite an annotator to ${campaign.name}`}
        size="lg"
        closeOnClickOutside={false}
      >
        <InviteAnnotator
          project={project}
          evaluation={evaluation}
          campaign={campaign}
          onDone={invite.close}
        />
      </Modal>
      <Modal opened={gold} onClose={golds.close} title={`Gold prompts of ${campaign.name}`} size="xl">
        <GoldEditor project={project} evaluation={evaluation} campaign={campaign} mayWrite={mayWrite} />
      </Modal>
      <Modal opened={correcting} onClose={corrections.close} title={`Corrections of ${campaign.name}`}>
        <MakeCorrections project={project} evaluation={evaluation} campaign={campaign} />
      </Modal>
      <Modal opened={editing} onClose={edit.close} title={`Settings of ${campaign.name}`} size="lg">
        <EditCampaign project={project} evaluation={evaluation} campaign={campaign} onDone={edit.close} />
      </Modal>
      <Modal opened={flags} onClose={flagged.close} title={`Flags and skips in ${campaign.name}`} size="xl">
        <FlagList project={project} evaluation={evaluation} campaign={campaign} />
      </Modal>
    </Card>
  );
}

function States({
  campaign,
  pending,
  onState,
}: {
  campaign: Campaign;
  pending: boolean;
  onState: (state: Campaign["state"]) => void;
}) {
  const to = (state: Campaign["state"], label: string) => (
    <Button size="xs" variant="default" loading={pending} onClick={() => onState(state)}>
      {label}
    </Button>
  );
  if (campaign.state === "closed") return to("open", "Reopen");
  return (
    <>
      {campaign.state === "open" ? to("paused", "Pause") : to("open", "Resume")}
      {to("closed", "Close")}
    </>
  );
}

function Annotators({ campaign }: { campaign: Campaign }) {
  if (!campaign.annotators.length) {
    return (
      <Text size="sm" c="dimmed">
        No submissions yet.
      </Text>
    );
  }
  const columns: Column<Annotator>[] = [
    { title: "Annotator", cell: (one) => one.annotator },
    { title: "Done", right: true, cell: (one) => count(one.done) },
    { title: "Skipped", right: true, wide: true, cell: (one) => count(one.skipped) },
    { title: "Flagged", right: true, wide: true, cell: (one) => count(one.flagged) },
    { title: "Median time", right: true, cell: (one) => seconds(one.median_seconds) },
    {
      title: "Gold pairs correct",
      right: true,
      wide: true,
      cell: (one) => (one.gold_pairs ? `${percent(one.gold, 0)} of ${count(one.gold_pairs)}` : "–"),
    },
    { title: "Last", wide: true, cell: (one) => <When at={one.last_at} /> },
  ];
  return (
    <DataTable
      label={`Annotators of ${campaign.name}`}
      rows={campaign.annotators}
      columns={columns}
      keyOf={(one) => one.annotator}
      below={(one) => `${count(one.skipped)} skipped, ${count(one.flagged)} flagged`}
    />
  );
}

import { Alert, Anchor, Button, Group, Select, Stack, Text, Title } from "@mantine/core";
import { IconJson } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { evaluationReportQuery } from "../../../api/evaluation/evaluations";
import { Empty, Loaded } from "../../../shared/Feedback";
import { count, seconds } from "../../../shared/format/format";
import { ReportBody } from "../../../shared/ReportBody";
import { Agreement, Contamination, Hacking } from "./Cautions";
import { CostsSection } from "./CostsSection";
import type { Report } from "./figures";
import { FrontierView } from "./frontier/FrontierView";
import { HumanSection } from "./HumanSection";
import { JudgeSection } from "./JudgeSection";
import { MethodsView } from "./MethodsView";
import { RankShares } from "./RankShares";
import { RewardSection } from "./RewardSection";
import { Warnings } from "./Section";
import { RewardCorrelations, RewardSumSection } from "./SeveralRewards";

/** Everything that is known of an evaluation, the cautions first. */
export function ReportTab({ project, evaluation }: { project: string; evaluation: string }) {
  const [baseline, setBaseline] = useState<string | null>(null);
  const query = useQuery(evaluationReportQuery(project, evaluation, baseline));
  return (
    <Loaded query={query}>
      {(report) => (
        <ReportView
          report={report}
          project={project}
          evaluation={evaluation}
          baseline={baseline}
          onBaseline={setBaseline}
        />
      )}
    </Loaded>
  );
}

interface Properties {
  report: Report;
  project: string;
  evaluation: string;
  baseline: string | null;
  onBaseline: (name: string | null) => void;
}

function ReportView({ report, project, evaluation, baseline, onBaseline }: Properties) {
  const spoken = report.human.length + report.judges.length + report.rewards.length;
  const address = `/api/v1/projects/${encodeURIComponent(project)}/evaluations/${encodeURIComponent(evaluation)}/report`;
  return (
    <Stack gap="xl">
      <Group justify="space-between" align="flex-end">
        <Text size="sm" c="dimmed">
          {count(report.prompts)} prompts{report.turns > 1 ? ` of up to ${count(report.turns)} turns` : ""}
          {report.prompts_from && `, ${report.prompts_from}`}; version {count(report.version)}, computed in{" "}
          {seconds(report.seconds)}.
        </Text>
        <Group gap="xs">
          {report.entrants.length > 1 && (
            <Select
              size="xs"
              aria-label="Baseline"
              leftSection={<Text size="xs">vs</Text>}
              data={report.entrants.map((one) => one.name)}
              value={baseline ?? report.baseline}
              allowDeselect={false}
              onChange={onBaseline}
            />
          )}
          <Button
            component="a"
            href={address}
            target="_blank"
            size="xs"
            variant="default"
            leftSection={<IconJson size={16} />}
          >
            JSON
          </Button>
        </Group>
      </Group>
      {!report.finished && (
        <Alert color="blue" variant="light" title="Not finished: the figures are preliminary">
          {report.unfinished.map((what) => (
            <Text key={what} size="sm">
              {what}
            </Text>
          ))}
        </Alert>
      )}
      <Warnings warnings={report.warnings} />
      {!spoken && (
        <Empty title="Nobody has judged yet">
          Ask people, a judge or a reward model; what they say is compared here.
        </Empty>
      )}
      {spoken > 0 && (
        <Part title="Entrants by every source">
          <MethodsView report={report} />
        </Part>
      )}
      {report.costs.length > 0 && (
        <Part
          title="Costs"
          about="Device time of every run in the lineage of an entrant, each counted once, with what it shares with others."
        >
          <CostsSection report={report} />
        </Part>
      )}
      {report.frontier && (
        <Part
          title="Frontier"
          about={`What each entrant gains, and how far its answers are from those of ${report.frontier.kl_to}; with 95% intervals over prompts.`}
        >
          <FrontierView report={report} frontier={report.frontier} />
        </Part>
      )}
      {report.recipe && (
        <Part title="What the recipe found" about="As its stage kept it when the evaluation was complete.">
          <ReportBody report={report.recipe} inside="evaluation" />
        </Part>
      )}
      {report.hacking.length > 0 && (
        <Part title="Reward hacking" id="hacking">
          <Hacking rows={report.hacking} />
        </Part>
      )}
      {report.ranks.length > 0 && (
        <Part
          title="Ranks"
          about="How often an entrant has each rank, best first; a tie has its share in each."
        >
          <RankShares shares={report.ranks} />
        </Part>
      )}
      {report.human.length > 0 && (
        <Part title="People">
          {report.human.map((human) => (
            <HumanSection key={`${human.campaign} ${human.criterion}`} human={human} />
          ))}
        </Part>
      )}
      {report.judges.length > 0 && (
        <Part title="Judges">
          {report.judges.map((judge) => (
            <JudgeSection key={judge.judge} judge={judge} />
          ))}
        </Part>
      )}
      {report.rewards.length > 0 && (
        <Part title="Reward models">
          {report.rewards.map((reward) => (
            <RewardSection key={reward.reward_model} reward={reward} />
          ))}
          {(report.reward_sums ?? []).map((sum) => (
            <RewardSumSection key={sum.name} sum={sum} />
          ))}
          <RewardCorrelations report={report} />
        </Part>
      )}
      {report.agreement.length > 0 && (
        <Part
          title="Agreement"
          about="On the same items, between every two sources; a tie of one of them counts half."
        >
          <Agreement rows={report.agreement} />
        </Part>
      )}
      <Part title="Prompts seen in training">
        <Contamination report={report} project={project} />
      </Part>
      <Anchor
        href="#top"
        size="sm"
        onClick={(event) => (event.preventDefault(), window.scrollTo({ top: 0 }))}
      >
        To the top
      </Anchor>
    </Stack>
  );
}

function Part({
  title,
  about,
  id,
  children,
}: {
  title: string;
  about?: string;
  id?: string;
  children: ReactNode;
}) {
  return (
    <Stack gap="sm" id={id}>
      <div>
        <Title order={2} size="h4">
          {title}
        </Title>
        {about && (
          <Text size="sm" c="dimmed">
            {about}
          </Text>
        )}
      </div>
      {children}
    </Stack>
  );
}

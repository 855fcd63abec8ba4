import { Group, Select, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState, type ReactNode } from "react";
import { evaluationReportQuery } from "../../../api/evaluation/evaluations";
import { Empty, Loaded } from "../../../shared/Feedback";
import { count, seconds } from "../../../shared/format/format";
import { Kept } from "../../../shared/report/ReportBody";
import { AcademicSection } from "./sections/AcademicSection";
import { Answer, sourceHeadline } from "./Answer";
import { Agreement, Contamination, Hacking } from "./Cautions";
import { CostsSection } from "./sections/CostsSection";
import type { Report } from "./Figure";
import { FluencySection, fluencyHeadline } from "./sections/FluencySection";
import { FrontierView } from "./frontier/FrontierView";
import { TrainingCurves } from "./frontier/TrainingCurves";
import { HumanSection } from "./sections/HumanSection";
import { JudgeSection } from "./sections/JudgeSection";
import { JurySection } from "./sections/JurySection";
import { MethodsView } from "./MethodsView";
import { RankShares } from "./comparison/RankShares";
import { ReportActions } from "./ReportActions";
import { RewardSection } from "./sections/RewardSection";
import { Section, Warnings } from "./sections/Section";
import { RewardCorrelations, RewardSumSection } from "./sections/SeveralRewards";

/** Everything that is known of an evaluation, the answer first. */
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
  return (
    <Stack gap="lg">
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
          <ReportActions project={project} evaluation={evaluation} baseline={baseline} />
        </Group>
      </Group>
      {spoken > 0 && report.headline ? (
        <Answer headline={report.headline} />
      ) : (
        <Empty title="No judgments yet">
          Ask people, a judge or a reward model; their assessments are compared here.
        </Empty>
      )}
      {spoken > 0 && <Sources report={report} />}
      {!!report.academic?.length && <Academic entrants={report.academic} />}
      <Further report={report} project={project} />
    </Stack>
  );
}

/** Every source, folded, with what it comes to. */
function Sources({ report }: { report: Report }) {
  return (
    <>
      {report.human.length > 0 && (
        <Part title="People">
          {report.human.map((human) => {
            const label = human.criterion ? `${human.campaign}: ${human.criterion}` : human.campaign;
            return (
              <HumanSection key={label} human={human} headline={sourceHeadline(report, "human", label)} />
            );
          })}
        </Part>
      )}
      {report.judges.length > 0 && (
        <Part title="Judges">
          {report.judges.map((judge) => (
            <JudgeSection
              key={judge.judge}
              judge={judge}
              headline={sourceHeadline(report, "judge", judge.judge)}
            />
          ))}
        </Part>
      )}
      {!!report.juries?.length && (
        <Part title="Juries">
          {report.juries.map((jury) => (
            <JurySection key={jury.jury} jury={jury} headline={sourceHeadline(report, "jury", jury.jury)} />
          ))}
        </Part>
      )}
      {report.rewards.length > 0 && (
        <Part title="Reward models">
          {report.rewards.map((reward) => (
            <RewardSection
              key={reward.reward_model}
              reward={reward}
              headline={sourceHeadline(report, "reward", reward.reward_model)}
            />
          ))}
          {(report.reward_sums ?? []).map((sum) => (
            <RewardSumSection key={sum.name} sum={sum} />
          ))}
          <RewardCorrelations report={report} />
        </Part>
      )}
    </>
  );
}

/** No one has to judge for these. */
function Academic({ entrants }: { entrants: NonNullable<Report["academic"]> }) {
  return (
    <Part title="Academic benchmarks">
      <Section
        title="Tasks"
        headline={`The newest result of each task, of ${entrants.map((one) => one.entrant).join(", ")}`}
        about="None of it depends on the prompts of this evaluation."
      >
        <AcademicSection entrants={entrants} />
      </Section>
    </Part>
  );
}

/** What several sources have in common, and what does not depend on any. */
function Further({ report, project }: { report: Report; project: string }) {
  const spoken = report.human.length + report.judges.length + report.rewards.length;
  const alarms = report.hacking.filter((row) => row.alarm).length;
  const unclear = report.hacking.some((row) => row.alarm === null);
  const seen = report.contamination.seen.length;
  return (
    <Part title="Combined results">
      {report.warnings.length > 0 && (
        <Section title="Caveats" headline={`${count(report.warnings.length)} to know before the figures`}>
          <Warnings warnings={report.warnings} />
        </Section>
      )}
      {spoken > 0 && (
        <Section
          title="Entrants by every source"
          headline={`${count(report.entrants.length)} entrants, ${count(spoken)} sources`}
        >
          <MethodsView report={report} />
        </Section>
      )}
      {report.agreement.length > 0 && (
        <Section
          title="Agreement"
          headline={`${count(report.agreement.length)} ${report.agreement.length === 1 ? "pair" : "pairs"} of sources`}
          about="On the same items, between every two sources; a tie of one of them counts half."
        >
          <Agreement rows={report.agreement} />
        </Section>
      )}
      {report.ranks.length > 0 && (
        <Section
          title="Ranks"
          headline="How often an entrant has each rank"
          about="Best first; a tie has its share in each."
        >
          <RankShares shares={report.ranks} />
        </Section>
      )}
      {report.hacking.length > 0 && (
        <Section
          title="Reward hacking"
          headline={alarms ? `${count(alarms)} suspected` : unclear ? "Inconclusive" : "No alarm"}
          badge={alarms ? { text: "alarm", color: "red" } : undefined}
        >
          <Hacking rows={report.hacking} />
        </Section>
      )}
      {report.frontier && (
        <Section
          title="Frontier"
          headline={`Gains against the distance from ${report.frontier.kl_to}`}
          about={`What each entrant gains, and how far its answers are from those of ${report.frontier.kl_to}; with 95% intervals over prompts.`}
        >
          <FrontierView report={report} frontier={report.frontier} />
          <TrainingCurves report={report} />
        </Section>
      )}
      {!!report.fluency?.entrants.length && (
        <Section
          title="Fluency"
          headline={fluencyHeadline(report.fluency)}
          about="Perplexity of the answers under one model, 95% intervals over prompts; distinct words and pairs of words over all; empty answers; repeated ones, equal to another prompt's or with a run of four words three times; cut at the token limit."
        >
          <FluencySection fluency={report.fluency} />
        </Section>
      )}
      {report.costs.length > 0 && (
        <Section
          title="Costs"
          headline={`Device time of ${count(report.costs.length)} entrants`}
          about="Device time of all runs that an entrant needs, each counted once: its own, SFT, the reward model, sampling and labelling. What others need, too, is named."
        >
          <CostsSection report={report} />
        </Section>
      )}
      {report.recipe && (
        <Section
          title="Recipe"
          headline={claimsHeadline(report.recipe)}
          about="Claims, training, examples and caveats, as the stage kept them when it ended."
        >
          <Kept report={report.recipe} />
        </Section>
      )}
      <Section
        title="Prompts seen in training"
        headline={
          report.contamination.checked.length
            ? `${count(seen)} of ${count(report.prompts)} prompts`
            : "Training data not checked"
        }
      >
        <Contamination report={report} project={project} />
      </Section>
    </Part>
  );
}

function claimsHeadline({ summary }: NonNullable<Report["recipe"]>): string {
  const checks = summary?.checks ?? [];
  return checks.length
    ? `${count(checks.filter((one) => one.met).length)} of ${count(checks.length)} claims met`
    : "What the stage kept";
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Stack gap="xs">
      <Title order={2} size="h5">
        {title}
      </Title>
      {children}
    </Stack>
  );
}

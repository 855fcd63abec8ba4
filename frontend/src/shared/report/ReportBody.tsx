import { Stack, Title } from "@mantine/core";
import type { ReactNode } from "react";
import { Empty } from "../Feedback";
import { count, counted } from "../format/format";
import { Answer, isHeadline, sourceHeadline } from "./Answer";
import { Agreement, Contamination, Hacking } from "./Cautions";
import { RankShares } from "./comparison/RankShares";
import type { Report } from "./Figure";
import { FrontierView } from "./frontier/FrontierView";
import { TrainingCurves } from "./frontier/TrainingCurves";
import { MethodsView } from "./MethodsView";
import { AcademicSection } from "./sections/AcademicSection";
import { CostsSection } from "./sections/CostsSection";
import { FluencySection, fluencyHeadline } from "./sections/FluencySection";
import { HumanSection } from "./sections/HumanSection";
import { JudgeSection } from "./sections/JudgeSection";
import { JurySection } from "./sections/JurySection";
import { RecipeSection } from "./sections/RecipeSection";
import { RewardSection } from "./sections/RewardSection";
import { Section, Warnings } from "./sections/Section";
import { RewardCorrelations, RewardSumSection } from "./sections/SeveralRewards";

/** The report of an evaluation, as it is or as a recipe's stage kept it, the answer first. */
export function ReportBody({ report, project }: { report: Report; project: string }) {
  const spoken = report.human.length + report.judges.length + report.rewards.length;
  const compared = report.methods.some((row) => Object.keys(row.reward).length > 0) || spoken > 0;
  return (
    <>
      {compared && report.headline ? (
        <Answer headline={report.headline} />
      ) : (
        <Empty title="No judgments yet">
          Ask people, a judge or a reward model; their assessments are compared here.
        </Empty>
      )}
      {report.recipe && <RecipeSection recipe={report.recipe} />}
      {compared && (
        <Section
          title="Entrants by every source"
          headline={counted(report.entrants.length, "entrant")}
          opened
        >
          <MethodsView report={report} />
        </Section>
      )}
      {spoken > 0 && <Sources report={report} />}
      {!!report.academic?.length && <Academic entrants={report.academic} />}
      <Further report={report} project={project} />
    </>
  );
}

/** Every source with what it comes to, folded except for the source of the answer. */
function Sources({ report }: { report: Report }) {
  return (
    <>
      {report.human.length > 0 && (
        <Part title="People">
          {report.human.map((human) => {
            const label = human.criterion ? `${human.campaign}: ${human.criterion}` : human.campaign;
            return (
              <HumanSection
                key={label}
                human={human}
                headline={sourceHeadline(report, "human", label, human.comparison.why)}
                opened={isHeadline(report, "human", label)}
              />
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
              baseline={report.baseline}
              headline={sourceHeadline(report, "judge", judge.judge, judge.comparison.why)}
              opened={isHeadline(report, "judge", judge.judge)}
            />
          ))}
        </Part>
      )}
      {!!report.juries?.length && (
        <Part title="Juries">
          {report.juries.map((jury) => (
            <JurySection
              key={jury.jury}
              jury={jury}
              headline={sourceHeadline(report, "jury", jury.jury, jury.comparison.why)}
              opened={isHeadline(report, "jury", jury.jury)}
            />
          ))}
        </Part>
      )}
      {report.rewards.length > 0 && (
        <Part title="Reward models">
          {report.rewards.map((reward) => (
            <RewardSection
              key={reward.reward_model}
              reward={reward}
              headline={sourceHeadline(report, "reward", reward.reward_model, reward.comparison.why)}
              opened={isHeadline(report, "reward", reward.reward_model)}
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
          opened={alarms > 0}
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
          headline={`Device time of ${counted(report.costs.length, "entrant")}`}
          about="Device time of all runs that an entrant needs, each counted once: its own, SFT, the reward model, sampling and labelling. Shared runs are named."
        >
          <CostsSection report={report} />
        </Section>
      )}
      {/* What a stage of an earlier version kept has no version, and did not keep this. */}
      {report.version > 0 && (
        <Section
          title="Prompts seen in training"
          headline={
            report.contamination.checked.length
              ? `${count(seen)} of ${counted(report.prompts, "prompt")}`
              : "Training data not checked"
          }
        >
          <Contamination report={report} project={project} />
        </Section>
      )}
    </Part>
  );
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

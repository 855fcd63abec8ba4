import { Alert, Badge, Group, Tabs, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { lazy, Suspense } from "react";
import { type Evaluation, evaluationQuery } from "../../api/evaluation/evaluations";
import { useMay } from "../../api/accounts/session";
import { LoadedPage, Loading } from "../../shared/Feedback";
import { count, counted } from "../../shared/format/format";
import { Link, LinkButton } from "../../shared/links";
import { MarksPanel } from "../../shared/marks/MarksPanel";
import { PageStar } from "../../shared/marks/Star";
import { Page } from "../../shared/Page";
import { When } from "../../shared/When";
import { AnswersTab } from "./entrants/AnswersTab";
import { EvaluationMenu } from "./EvaluationMenu";
import { EvaluationState } from "./EvaluationState";
import { GateTab } from "./gate/GateTab";
import { ItemsTab } from "./items/ItemsTab";
import { JudgesTab } from "./judges/JudgesTab";
import { PeopleTab } from "./campaigns/PeopleTab";
import { PreferencesTab } from "./preferences/PreferencesTab";

const ReportTab = lazy(() => import("./report/ReportTab").then((module) => ({ default: module.ReportTab })));

const route = getRouteApi("/p/$project/evaluations/$evaluation");

const TABS = {
  report: "Report",
  items: "Items",
  answers: "Answers",
  people: "People",
  judges: "Judges",
  preferences: "Preferences",
  gate: "Gate",
} as const;
type Tab = keyof typeof TABS;

/** Whether anyone has judged the answers yet. */
function isAssessed(evaluation: Evaluation): boolean {
  return (
    evaluation.campaigns.some((one) => one.rankings > 0) ||
    evaluation.judges.some((one) => one.ok > 0) ||
    evaluation.reward_assessments.some((one) => one.values > 0)
  );
}

export function EvaluationPage() {
  const { project, evaluation } = route.useParams();
  const query = useQuery(evaluationQuery(project, evaluation));
  return (
    <LoadedPage
      title="Evaluation"
      query={query}
      others={
        <Link to="/p/$project/evaluations" params={{ project }}>
          All evaluations
        </Link>
      }
    >
      {(found) => <EvaluationView key={found.id} project={project} evaluation={found} />}
    </LoadedPage>
  );
}

function EvaluationView({ project, evaluation }: { project: string; evaluation: Evaluation }) {
  const { tab } = route.useSearch();
  const navigate = route.useNavigate();
  const open = tab && tab in TABS ? (tab as Tab) : isAssessed(evaluation) ? "report" : "answers";
  const numbers: Partial<Record<Tab, number>> = {
    people: evaluation.campaigns.length,
    judges: evaluation.judges.length,
  };
  return (
    <Page
      title={evaluation.name}
      beside={
        <>
          <EvaluationState state={evaluation.state} />
          <PageStar project={project} type="evaluation" item={evaluation.id} name={evaluation.name} />
        </>
      }
      about={
        <>
          <Origin project={project} evaluation={evaluation} />, {count(evaluation.entrants.length)}{" "}
          {evaluation.entrants.length === 1 ? "entrant" : "entrants"}; by {evaluation.created_by}{" "}
          <When at={evaluation.created_at} />
          {evaluation.description && <Text size="sm">{evaluation.description}</Text>}
        </>
      }
      actions={<EvaluationMenu project={project} evaluation={evaluation} />}
    >
      <NextStep project={project} evaluation={evaluation} />
      <MarksPanel project={project} type="evaluation" item={evaluation.id} />
      <Tabs
        value={open}
        keepMounted={false}
        onChange={(name) =>
          name && void navigate({ search: { tab: name }, replace: true, resetScroll: false })
        }
      >
        <Tabs.List aria-label="Parts of the evaluation">
          {Object.entries(TABS).map(([name, label]) => (
            <Tabs.Tab
              key={name}
              value={name}
              rightSection={
                numbers[name as Tab] ? (
                  <Badge size="sm" color="gray" circle>
                    {numbers[name as Tab]}
                  </Badge>
                ) : null
              }
            >
              {label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="report" pt="md">
          <Suspense fallback={<Loading />}>
            <ReportTab project={project} evaluation={evaluation.id} />
          </Suspense>
        </Tabs.Panel>
        <Tabs.Panel value="items" pt="md">
          <ItemsTab project={project} evaluation={evaluation} />
        </Tabs.Panel>
        <Tabs.Panel value="answers" pt="md">
          <AnswersTab project={project} evaluation={evaluation} />
        </Tabs.Panel>
        <Tabs.Panel value="people" pt="md">
          <PeopleTab project={project} evaluation={evaluation} />
        </Tabs.Panel>
        <Tabs.Panel value="judges" pt="md">
          <JudgesTab project={project} evaluation={evaluation} />
        </Tabs.Panel>
        <Tabs.Panel value="preferences" pt="md">
          <PreferencesTab project={project} evaluation={evaluation} />
        </Tabs.Panel>
        <Tabs.Panel value="gate" pt="md">
          <GateTab project={project} evaluation={evaluation} />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

const ROWS: Record<string, string> = { held_out: "held-out rows", train: "training rows", all: "all rows" };

function Origin({ project, evaluation }: { project: string; evaluation: Evaluation }) {
  const from = evaluation.prompts_from as { set?: string; dataset?: string; split?: string };
  const turns = evaluation.turns > 1 ? ` of up to ${evaluation.turns} turns` : "";
  return (
    <>
      {counted(evaluation.prompts, "prompt")}
      {turns} of{" "}
      {from.dataset ? (
        <Link
          size="sm"
          underline="always"
          to="/p/$project/datasets/$dataset"
          params={{ project, dataset: from.dataset }}
          search={{}}
        >
          {from.dataset}
        </Link>
      ) : (
        from.set
      )}
      {from.dataset && ` (${ROWS[from.split ?? "all"]})`}
    </>
  );
}

/** What someone who has just begun does next; nothing once there is a judge or campaign. */
function NextStep({ project, evaluation }: { project: string; evaluation: Evaluation }) {
  const mayRun = useMay(project, "run");
  const { entrants, campaigns, judges } = evaluation;
  if (!mayRun || campaigns.length || judges.length) return null;
  const tab = (name: Tab) => ({
    component: "a" as const,
    to: "/p/$project/evaluations/$evaluation" as const,
    params: { project, evaluation: evaluation.name },
    search: { tab: name, ask: true as const },
    size: "xs",
    variant: "default" as const,
  });
  if (entrants.length < 2) {
    return (
      <Alert color="gray" variant="light" title="A comparison needs at least two entrants">
        Add models or endpoints that answer, or answers from a file, under Answers.
      </Alert>
    );
  }
  return (
    <Alert
      color="gray"
      variant="light"
      title={
        evaluation.state === "answering"
          ? "Answers are being generated"
          : "How should the answers be compared?"
      }
    >
      <Text size="sm" mb="xs">
        {evaluation.state === "answering"
          ? "You can already ask a judge: it starts when all answers are complete."
          : "People rank the answers blind in their browser; a judge is a model called through an endpoint."}
      </Text>
      <Group gap="xs">
        <LinkButton {...tab("people")}>Ask people</LinkButton>
        <LinkButton {...tab("judges")}>Ask a judge</LinkButton>
      </Group>
    </Alert>
  );
}

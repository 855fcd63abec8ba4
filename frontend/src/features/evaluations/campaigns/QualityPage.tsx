import { Badge, Progress, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { Schemas } from "../../../api/client";
import { qualityQuery } from "../../../api/evaluation/campaigns";
import { Empty, LoadedPage } from "../../../shared/Feedback";
import { count, seconds } from "../../../shared/format/format";
import { Link } from "../../../shared/links";
import { Page } from "../../../shared/Page";
import { DataTable, type Column } from "../../../shared/tables/DataTable";
import { When } from "../../../shared/When";
import { QuestionCounts } from "./QuestionCounts";
import { Share } from "./Share";
import { SpanFlags } from "./SpanFlags";

type Annotator = Schemas["AnnotatorQuality"];
type Day = Schemas["CampaignDay"];

const route = getRouteApi("/p/$project/evaluations/$evaluation/campaigns/$campaign");
const COLOR = { open: "gray", passed: "teal", failed: "red" };

/** How fast and how well the annotators of a campaign work. */
export function QualityPage() {
  const { project, evaluation, campaign } = route.useParams();
  const query = useQuery(qualityQuery(project, evaluation, campaign));
  return (
    <LoadedPage title={`Quality of ${campaign}`} query={query}>
      {({ annotators, days, questions, spans, suggestions }) => (
        <Page
          title={`Quality of ${campaign}`}
          about={
            <>
              How fast and how well each annotator works.{" "}
              <Link
                underline="always"
                to="/p/$project/evaluations/$evaluation"
                params={{ project, evaluation }}
                search={{ tab: "people" }}
              >
                All campaigns of {evaluation}
              </Link>
            </>
          }
        >
          {annotators.length === 0 ? (
            <Empty title="No submissions yet">Figures appear with the first submission.</Empty>
          ) : (
            <>
              <Annotators rows={annotators} />
              {questions.length > 0 && <QuestionCounts questions={questions} />}
              {suggestions && <Suggestions of={suggestions} />}
              <Title order={2} size="h4">
                By day
              </Title>
              <Days rows={days} />
              {spans.length > 0 && (
                <SpanFlags project={project} evaluation={evaluation} campaign={campaign} counts={spans} />
              )}
            </>
          )}
        </Page>
      )}
    </LoadedPage>
  );
}

function Annotators({ rows }: { rows: Annotator[] }) {
  const qualified = rows.some((one) => one.qualification !== null);
  const columns: Column<Annotator>[] = [
    { title: "Annotator", cell: (one) => one.annotator },
    { title: "Done", right: true, cell: (one) => count(one.done) },
    {
      title: "Items per hour",
      right: true,
      cell: (one) => (one.items_per_hour === null ? "–" : count(Math.round(one.items_per_hour))),
    },
    { title: "Median time", right: true, wide: true, cell: (one) => seconds(one.median_seconds) },
    {
      title: "Agreement with others",
      right: true,
      cell: (one) => (
        <Share of={one.agreement} low={one.agreement_low} high={one.agreement_high} n={one.shared_items} />
      ),
    },
    {
      title: "With reviewers",
      right: true,
      wide: true,
      cell: (one) => (
        <Share
          of={one.agreement_with_reviewers}
          low={one.agreement_with_reviewers_low}
          high={one.agreement_with_reviewers_high}
          n={one.adjudicated_items}
        />
      ),
    },
    {
      title: "Gold pairs correct",
      right: true,
      wide: true,
      cell: (one) => <Share of={one.gold} low={one.gold_low} high={one.gold_high} n={one.gold_pairs} />,
    },
    { title: "Skipped", right: true, wide: true, cell: (one) => count(one.skipped) },
    { title: "Flagged", right: true, wide: true, cell: (one) => count(one.flagged) },
    { title: "Last", wide: true, cell: (one) => <When at={one.last_at} /> },
  ];
  if (qualified) {
    columns.splice(1, 0, {
      title: "Qualification",
      cell: (one) =>
        one.qualification && (
          <Badge color={COLOR[one.qualification]} className="state-badge">
            {one.qualification}
          </Badge>
        ),
    });
  }
  return (
    <DataTable
      label="Annotators"
      rows={rows}
      columns={columns}
      keyOf={(one) => one.annotator}
      below={(one) =>
        `${seconds(one.median_seconds)} each; ${count(one.skipped)} skipped, ${count(one.flagged)} flagged`
      }
    />
  );
}

/** Whether annotators agree more with a judge whose suggestion they see. */
function Suggestions({ of }: { of: Schemas["SuggestionQuality"] }) {
  const rows = [
    { name: "Suggestion visible", ...of.visible },
    { name: "Suggestion hidden", ...of.hidden },
  ];
  const columns: Column<(typeof rows)[number]>[] = [
    { title: "While annotating", cell: (one) => one.name },
    { title: "Submissions", right: true, cell: (one) => count(one.submissions) },
    {
      title: "Pairs in the judge's order",
      right: true,
      cell: (one) => (
        <Share of={one.agreement} low={one.agreement_low} high={one.agreement_high} n={one.pairs} />
      ),
    },
  ];
  return (
    <>
      <Title order={2} size="h4">
        Agreement with {of.judge}
      </Title>
      <Text size="sm" c="dimmed">
        A higher share where the suggestion was visible may mean that it draws annotators to the judge.
      </Text>
      <DataTable label="Agreement with the judge" rows={rows} columns={columns} keyOf={(one) => one.name} />
    </>
  );
}

function Days({ rows }: { rows: Day[] }) {
  const most = Math.max(1, ...rows.map((one) => one.submissions));
  const columns: Column<Day>[] = [
    { title: "Day (UTC)", cell: (one) => one.day },
    { title: "Submissions", right: true, cell: (one) => count(one.submissions) },
    {
      title: "Share of the busiest day",
      wide: true,
      cell: (one) => (
        <Progress
          value={(100 * one.submissions) / most}
          miw={120}
          aria-label={`${one.day}: ${count(one.submissions)} submissions`}
        />
      ),
    },
    { title: "Annotators", right: true, cell: (one) => count(one.annotators) },
    { title: "Median time", right: true, cell: (one) => seconds(one.median_seconds) },
  ];
  return <DataTable label="Days" rows={rows} columns={columns} keyOf={(one) => one.day} />;
}

import { Anchor, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { reportQuery } from "../../api/runs/pipelines";
import { Empty, Loaded } from "../../shared/Feedback";
import { Link } from "../../shared/links";
import { ReportBody } from "../../shared/report/ReportBody";
import { Warnings } from "../../shared/report/sections/Section";

export function ReportView({
  project,
  pipeline,
  live,
}: {
  project: string;
  pipeline: string;
  live: boolean;
}) {
  const query = useQuery(reportQuery(project, pipeline));
  return (
    <Loaded query={query}>
      {(report) =>
        report.report && report.summary ? (
          <Stack gap="lg">
            <Group justify="space-between">
              <Text size="sm">
                {report.evaluation && (
                  <>
                    As it was when the stage ended. Ask people or a judge about the same answers in the
                    evaluation{" "}
                    <Link
                      underline="always"
                      to="/p/$project/evaluations/$evaluation"
                      params={{ project, evaluation: report.evaluation.name }}
                    >
                      {report.evaluation.name}
                    </Link>
                    .
                  </>
                )}
              </Text>
              <Anchor
                size="sm"
                href={`/api/v1/projects/${project}/pipelines/${pipeline}/report`}
                download="report.json"
              >
                The report as JSON
              </Anchor>
            </Group>
            <ReportBody report={report.report} project={project} />
            <Warnings
              warnings={(report.warnings ?? []).filter(
                (warning) => !report.report?.recipe?.warnings?.includes(warning),
              )}
              title="Warnings of the runs"
            />
          </Stack>
        ) : (
          <Empty title={live ? "No report yet" : "There is no report"}>
            {live ? "It appears here when the evaluation has finished." : (report.warnings ?? []).join(" ")}
          </Empty>
        )
      }
    </Loaded>
  );
}

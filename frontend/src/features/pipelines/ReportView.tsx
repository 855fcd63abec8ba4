import { Anchor, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { reportQuery } from "../../api/runs/pipelines";
import { Empty, Loaded } from "../../shared/Feedback";
import { ReportBody } from "../../shared/report/ReportBody";

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
        report.summary ? (
          <Stack gap="xl">
            <ReportBody report={report} />
            <Anchor
              size="sm"
              href={`/api/v1/projects/${project}/pipelines/${pipeline}/report`}
              download="report.json"
            >
              The report as JSON
            </Anchor>
          </Stack>
        ) : (
          <Empty title={live ? "The report comes last" : "There is no report"}>
            {live ? "It appears here when the evaluation has finished." : (report.warnings ?? []).join(" ")}
          </Empty>
        )
      }
    </Loaded>
  );
}

import { Group, Select, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { evaluationReportQuery } from "../../../api/evaluation/evaluations";
import { ItemComments } from "../../../shared/comments/ItemComments";
import { Loaded } from "../../../shared/Feedback";
import { count, seconds, counted } from "../../../shared/format/format";
import type { Report } from "../../../shared/report/Figure";
import { ItemsOf } from "../../../shared/report/ItemsLink";
import { ReportBody } from "../../../shared/report/ReportBody";
import { ReportActions } from "./ReportActions";

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
  return (
    <Stack gap="lg">
      <Group justify="space-between" align="flex-end">
        <Text size="sm" c="dimmed">
          {counted(report.prompts, "prompt")}
          {report.turns > 1 ? ` of up to ${count(report.turns)} turns` : ""}
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
      <ItemsOf value={report.evaluation}>
        <ReportBody report={report} project={project} />
      </ItemsOf>
      <ItemComments project={project} type="evaluation" item={evaluation} about="this report" />
    </Stack>
  );
}

import { Alert, Anchor, Badge, Button, Card, Group, Menu, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type Evaluation, evaluationKeys } from "../../../api/evaluation/evaluations";
import { judgmentsHref } from "../../../api/evaluation/files";
import { type Judge, removeJudge, retryJudge } from "../../../api/evaluation/judges";
import { useMay } from "../../../api/accounts/session";
import { Failure } from "../../../shared/Feedback";
import { count, percent, short, counted } from "../../../shared/format/format";
import { Link } from "../../../shared/links";
import { StateBadge } from "../../../shared/StateBadge";
import { WithCode } from "../../../shared/text/WithCode";
import { Budget } from "./Budget";
import { Calibrate } from "./Calibrate";
import { Verdicts } from "./Verdicts";

const route = getRouteApi("/p/$project/evaluations/$evaluation");

interface Properties {
  project: string;
  evaluation: Evaluation;
  judge: Judge;
}

/** One judge: its progress, counts of its verdicts, its cost, and every verdict. */
export function JudgeCard({ project, evaluation, judge }: Properties) {
  const { judge: open } = route.useSearch();
  const navigate = route.useNavigate();
  const shown = open === judge.name;
  const show = (name: string | undefined) =>
    void navigate({
      search: { tab: "judges", judge: name },
      replace: true,
      resetScroll: false,
    });
  return (
    <Card withBorder component="section" aria-label={`Judge ${judge.name}`}>
      <Stack gap="sm">
        <Group justify="space-between">
          <Group gap="xs">
            <Title order={3} size="h5">
              {judge.name}
            </Title>
            {judge.imported ? <Badge color="gray">from a file</Badge> : <StateBadge state={judge.state} />}
            <Badge color="gray">{judge.style.replace("_", " ")}</Badge>
          </Group>
          <Actions project={project} evaluation={evaluation} judge={judge} />
        </Group>
        <Text size="sm" c="dimmed" component="div">
          {judge.model_id ? (
            <Link
              size="sm"
              underline="always"
              to="/p/$project/models/$model"
              params={{ project, model: judge.model_id }}
            >
              {judge.model}
            </Link>
          ) : (
            judge.model
          )}
          {judge.endpoint && ` at endpoint ${judge.endpoint}`}
          {judge.family && `, family ${judge.family}`}
          {judge.run && (
            <>
              ,{" "}
              <Link
                size="sm"
                underline="always"
                to="/p/$project/runs/$run"
                params={{ project, run: judge.run.id }}
              >
                its run
              </Link>
              {judge.run.state !== "succeeded" && judge.run.reason && (
                <>
                  : <WithCode text={judge.run.reason} />
                </>
              )}
            </>
          )}
        </Text>
        {!judge.valid && <Invalid judge={judge} />}
        <Text size="sm">
          {counted(judge.verdicts, "verdict")}: {count(judge.ok)} parsed, {count(judge.unparsed)} unparsed,{" "}
          {count(judge.refused)} refused, {counted(judge.errors, "error")}
          {judge.superseded > 0 && `; ${count(judge.superseded)} older ones superseded`}.
        </Text>
        {!judge.imported && judge.style !== "preference" && (
          <Text size="xs" c="dimmed">
            {counted(judge.requests, "request")} paid for, {count(judge.cached)} cached
            {judge.prompt_tokens !== null &&
              `; ${counted(judge.prompt_tokens, "token")} read and ${count(judge.completion_tokens)} written`}
            {Object.entries(judge.failures).map(
              ([code, times]) => `; ${code.replace(/_/g, " ")} ${counted(times, "time")}`,
            )}
            .{judge.cost !== null && ` ${costs(judge)}`}
          </Text>
        )}
        <div>
          <Button
            size="compact-sm"
            variant="default"
            aria-expanded={shown}
            onClick={() => show(shown ? undefined : judge.name)}
          >
            {shown ? "Hide the verdicts" : "Show the verdicts"}
          </Button>
        </div>
        {shown && <Verdicts project={project} evaluation={evaluation} judge={judge} />}
      </Stack>
    </Card>
  );
}

/** Why its verdicts count nowhere. */
function Invalid({ judge }: { judge: Judge }) {
  const threshold = (judge.settings as { unparsed_threshold?: number }).unparsed_threshold ?? 0.05;
  if ((judge.unparsed_rate ?? 0) > threshold) {
    return (
      <Alert color="red" variant="light" title="Too many unusable verdicts">
        {percent(judge.unparsed_rate)} of the verdicts could not be parsed, were refused or failed; more than{" "}
        {percent(threshold, 0)} makes the judge invalid.
      </Alert>
    );
  }
  return (
    <Alert color="red" variant="light" title="Not valid: its verdicts do not count">
      The reason: {judge.invalid_because}.
    </Alert>
  );
}

function costs({ cost, uncertain_cost, calibration_cost, settings }: Judge): string {
  const { budget } = settings as { budget?: number | null };
  const own = `Cost so far${uncertain_cost ? ", at most" : ""}: ${short(cost ?? 0)}`;
  const said = calibration_cost ? `${own}, and ${short(calibration_cost)} for its calibrations` : own;
  return budget == null ? `${said}.` : `${said} of a budget of ${short(budget)}.`;
}

function Actions({ project, evaluation, judge }: Properties) {
  const client = useQueryClient();
  const mayRun = useMay(project, "run");
  const mayWrite = useMay(project, "write");
  const renew = () => client.invalidateQueries({ queryKey: evaluationKeys.all(project) });
  const retry = useMutation({
    mutationFn: () => retryJudge(project, evaluation.id, judge.id),
    onSuccess: renew,
  });
  const remove = useMutation({
    mutationFn: () => removeJudge(project, evaluation.id, judge.id),
    onSuccess: renew,
  });
  const ended = ["succeeded", "failed", "cancelled"].includes(judge.state);
  const error = retry.error ?? remove.error;
  return (
    <Stack gap={4}>
      <Group gap="xs">
        {mayRun && !judge.imported && ended && (judge.errors > 0 || judge.state !== "succeeded") && (
          <Button size="compact-sm" loading={retry.isPending} onClick={() => retry.mutate()}>
            Retry what failed
          </Button>
        )}
        {mayRun && !judge.imported && (
          <Calibrate project={project} evaluation={evaluation.id} judge={judge} />
        )}
        {mayRun && judge.cost !== null && (
          <Budget project={project} evaluation={evaluation.id} judge={judge} />
        )}
        <Anchor size="sm" href={judgmentsHref(project, evaluation.id, judge.id)} download>
          Export
        </Anchor>
        {mayWrite && (
          <Menu position="bottom-end">
            <Menu.Target>
              <Button size="compact-sm" variant="subtle" color="red" loading={remove.isPending}>
                Remove
              </Button>
            </Menu.Target>
            <Menu.Dropdown>
              <Menu.Label>Deletes the verdicts; paid answers stay cached</Menu.Label>
              <Menu.Item color="red" onClick={() => remove.mutate()}>
                Remove {judge.name}
              </Menu.Item>
            </Menu.Dropdown>
          </Menu>
        )}
      </Group>
      {error && <Failure error={error} />}
    </Stack>
  );
}

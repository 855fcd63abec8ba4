import { Alert, Button, Card, Group, Progress, SimpleGrid, Stack, Stepper, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import {
  changeImport,
  deleteImport,
  type Import,
  importQuery,
  importsQuery,
  stepImport,
} from "../../../api/datasets/imports";
import { useMay } from "../../../api/accounts/session";
import { ActionBar } from "../../../shared/ActionBar";
import { Failure, LoadedPage } from "../../../shared/Feedback";
import { bytes, count, counted } from "../../../shared/format/format";
import { Page } from "../../../shared/Page";
import { Link, LinkButton } from "../../../shared/links";
import { CheckReport } from "./CheckReport";
import { ImportOptions } from "./ImportOptions";
import { ImportPreview } from "./ImportPreview";
import { Confirm } from "../../../shared/Confirm";

const route = getRouteApi("/p/$project/imports/$import");
const STEP: Record<Import["state"], number> = {
  draft: 1,
  validating: 2,
  validated: 2,
  importing: 3,
  failed: 2,
  cancelled: 2,
  succeeded: 4,
};

/** An import after its file has arrived. Everything is stored on the server: another tab, or another day, shows the same. */
export function ImportPage() {
  const { project, import: id } = route.useParams();
  const query = useQuery(importQuery(project, id));
  return (
    <LoadedPage
      title="Import"
      query={query}
      others={
        <Link to="/p/$project/imports" params={{ project }}>
          Start an import
        </Link>
      }
    >
      {(found) => <ImportView project={project} found={found} />}
    </LoadedPage>
  );
}

function ImportView({ project, found }: { project: string; found: Import }) {
  const step = STEP[found.state];
  // A person may go back to the columns while nothing runs.
  const [back, setBack] = useState<number | null>(null);
  const shown = step === 2 && back === 1 && found.state !== "validating" ? 1 : step;
  return (
    <Page
      title={`Import ${found.name}`}
      about={`${found.hub ?? found.file_name}, ${found.format}, ${bytes(found.size)}`}
      actions={<Discard project={project} found={found} />}
    >
      <Stepper
        className="steps"
        active={shown}
        size="sm"
        onStepClick={(at) => setBack(at)}
        allowNextStepsSelect={false}
      >
        <Stepper.Step label="File" allowStepSelect={false} />
        <Stepper.Step label="Columns" allowStepSelect={step === 2} />
        <Stepper.Step label="Check" allowStepSelect={step === 2} loading={found.state === "validating"} />
        <Stepper.Step label="Import" allowStepSelect={false} loading={found.state === "importing"} />
      </Stepper>
      {shown === 1 && <Columns project={project} found={found} onChecked={() => setBack(null)} />}
      {shown === 2 && <Checked project={project} found={found} onBack={() => setBack(1)} />}
      {shown === 3 && <Running project={project} found={found} what="Importing" />}
      {shown === 4 && <Done project={project} found={found} />}
    </Page>
  );
}

function useStep(project: string, id: string, step: "validate" | "start" | "cancel") {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => stepImport(project, id, step),
    onSuccess: (next) => client.setQueryData(importQuery(project, id).queryKey, next),
  });
}

function Columns({ project, found, onChecked }: { project: string; found: Import; onChecked: () => void }) {
  const validate = useStep(project, found.id, "validate");
  const [saving, setSaving] = useState(false);
  return (
    <Stack>
      <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
        <ImportOptions project={project} found={found} onSaving={setSaving} />
        <ImportPreview project={project} found={found} />
      </SimpleGrid>
      <ActionBar error={validate.error}>
        <Button
          disabled={saving || !!found.problem}
          loading={validate.isPending}
          onClick={() => validate.mutate(undefined, { onSuccess: onChecked })}
        >
          Check all rows
        </Button>
      </ActionBar>
    </Stack>
  );
}

function Checked({ project, found, onBack }: { project: string; found: Import; onBack: () => void }) {
  const start = useStep(project, found.id, "start");
  const validate = useStep(project, found.id, "validate");
  const client = useQueryClient();
  const skip = useMutation({
    mutationFn: () => changeImport(project, found.id, { bad_rows: "skip" }),
    onSuccess: (next) => client.setQueryData(importQuery(project, found.id).queryKey, next),
  });
  if (found.state === "validating") return <Running project={project} found={found} what="Checking" />;
  const { report } = found;
  const refused = found.options.bad_rows === "refuse" && (report?.bad_rows ?? 0) > 0;
  return (
    <Stack>
      {found.state === "cancelled" && <Alert color="gray">The import was stopped. Nothing was stored.</Alert>}
      {found.problem && (
        <Alert color="red" title={found.problem.title} role="alert">
          {found.problem.detail}
          {found.problem.hint && (
            <>
              <br />
              {found.problem.hint}
            </>
          )}
        </Alert>
      )}
      {report && <CheckReport project={project} found={found} report={report} />}
      <ActionBar
        error={start.error ?? validate.error ?? skip.error}
        says={
          refused && (
            <Text size="sm" c="dimmed">
              Some rows are not valid. Correct the file or its columns, or skip these rows.
            </Text>
          )
        }
      >
        <Button variant="default" onClick={onBack}>
          Back to the columns
        </Button>
        {refused && (
          <Button variant="default" loading={skip.isPending} onClick={() => skip.mutate()}>
            Skip {counted(report?.bad_rows, "row")}
          </Button>
        )}
        {report ? (
          <Button disabled={refused} loading={start.isPending} onClick={() => start.mutate()}>
            Import {counted(report.rows, "row")}
          </Button>
        ) : (
          <Button loading={validate.isPending} onClick={() => validate.mutate()}>
            Check all rows
          </Button>
        )}
      </ActionBar>
    </Stack>
  );
}

function Running({ project, found, what }: { project: string; found: Import; what: string }) {
  const cancel = useStep(project, found.id, "cancel");
  const { progress } = found;
  const share = progress?.total_bytes ? progress.bytes / progress.total_bytes : 0;
  return (
    <Card withBorder>
      <Stack gap="sm">
        <Text fw={600}>{what}…</Text>
        <Progress value={100 * share} aria-label={`${what} the rows`} animated />
        <Group justify="space-between">
          <Text size="sm" c="dimmed" aria-live="polite">
            {progress
              ? `${counted(progress.read, "row")} read, ${bytes(progress.bytes)} of ${bytes(progress.total_bytes)}`
              : "starting"}
            . You can close this page.
          </Text>
          <Button
            size="xs"
            variant="light"
            color="red"
            loading={cancel.isPending}
            onClick={() => cancel.mutate()}
          >
            Stop
          </Button>
        </Group>
        {cancel.error && <Failure error={cancel.error} />}
      </Stack>
    </Card>
  );
}

function Done({ project, found }: { project: string; found: Import }) {
  return (
    <Stack>
      <Alert color="teal" title={`${count(found.report?.rows)} rows are in ${found.name}`}>
        <LinkButton
          component="a"
          size="xs"
          mt="xs"
          to="/p/$project/datasets/$dataset"
          params={{ project, dataset: found.dataset_id ?? found.name }}
          search={{}}
        >
          Open the dataset
        </LinkButton>
      </Alert>
      {found.report && <CheckReport project={project} found={found} report={found.report} />}
    </Stack>
  );
}

function Discard({ project, found }: { project: string; found: Import }) {
  const client = useQueryClient();
  const navigate = route.useNavigate();
  const mayWrite = useMay(project, "write");
  const [asking, ask] = useDisclosure();
  const remove = useMutation({
    mutationFn: () => deleteImport(project, found.id),
    onSuccess: async () => {
      await navigate({ to: "/p/$project/datasets", params: { project } });
      await client.invalidateQueries({ queryKey: importsQuery(project).queryKey });
    },
  });
  if (!mayWrite || ["succeeded", "importing", "validating"].includes(found.state)) return null;
  return (
    <>
      <Button variant="default" onClick={ask.open}>
        Discard
      </Button>
      <Confirm
        title={asking ? "Discard this import?" : null}
        go="Discard"
        pending={remove.isPending}
        error={remove.error}
        onClose={ask.close}
        onGo={() => remove.mutate()}
      >
        The uploaded file and its settings are deleted. No dataset is touched.
      </Confirm>
    </>
  );
}

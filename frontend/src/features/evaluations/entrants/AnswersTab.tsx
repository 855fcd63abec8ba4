import { Alert, Button, List, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { Evaluation } from "../../../api/evaluation/evaluations";
import { useMay } from "../../../api/accounts/session";
import { Empty } from "../../../shared/Feedback";
import { WithCode } from "../../../shared/text/WithCode";
import { AddEntrant } from "./AddEntrant";
import { EntrantsTable } from "./EntrantsTable";
import { ExportAnswers } from "./ExportAnswers";
import { ANSWERS } from "../imports/answers";
import { ImportFile } from "../imports/ImportFile";
import { Section } from "../parts";
import { PromptList } from "./PromptList";
import { RewardsTable } from "./RewardsTable";

/** The entrants, their progress, and their answers. */
export function AnswersTab({ project, evaluation }: { project: string; evaluation: Evaluation }) {
  const mayRun = useMay(project, "run");
  const mayWrite = useMay(project, "write");
  const [adding, add] = useDisclosure();
  const [importing, bring] = useDisclosure();
  const there = evaluation.entrants.some((one) => one.responses > 0);
  const actions = (
    <>
      {mayRun && (
        <Button size="xs" variant="default" onClick={add.open}>
          Add an entrant
        </Button>
      )}
      {mayWrite && (
        <Button size="xs" variant="default" onClick={bring.open}>
          Answers from a file
        </Button>
      )}
      {there && <ExportAnswers project={project} evaluation={evaluation} />}
    </>
  );
  return (
    <Stack gap="xl">
      {evaluation.unfinished.length > 0 && (
        <Alert color="blue" variant="light" title="Not finished yet">
          <List size="sm">
            {evaluation.unfinished.map((what) => (
              <List.Item key={what}>
                <WithCode text={what} />
              </List.Item>
            ))}
          </List>
        </Alert>
      )}
      <Section title="Entrants" actions={actions}>
        {evaluation.entrants.length ? (
          <EntrantsTable project={project} entrants={evaluation.entrants} />
        ) : (
          <Empty title="No entrants yet">
            Add a model or an endpoint that answers the prompts, or answers that were made elsewhere: files of
            FastChat, AlpacaEval and Arena-Hard.
          </Empty>
        )}
      </Section>
      <RewardsTable project={project} evaluation={evaluation} />
      <PromptList project={project} evaluation={evaluation} />
      <AddEntrant project={project} evaluation={evaluation} opened={adding} onClose={add.close} />
      <ImportFile
        of={ANSWERS}
        project={project}
        evaluation={evaluation}
        opened={importing}
        onClose={bring.close}
      />
    </Stack>
  );
}

import { Button, Modal, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { Evaluation } from "../../../api/evaluation/evaluations";
import { useMay } from "../../../api/accounts/session";
import { Empty } from "../../../shared/Feedback";
import { ImportFile } from "../imports/ImportFile";
import { JUDGMENTS } from "../imports/judgments";
import { JudgeCard } from "./JudgeCard";
import { JudgeForm } from "./JudgeForm";
import { Juries } from "./Juries";
import { Section } from "../parts";
import { useAsking } from "../useAsking";

/** Models that judge the answers, asked from here or elsewhere. */
export function JudgesTab({ project, evaluation }: { project: string; evaluation: Evaluation }) {
  const mayRun = useMay(project, "run");
  const mayWrite = useMay(project, "write");
  const [asking, ask] = useAsking();
  const [importing, bring] = useDisclosure();
  const found = evaluation.judges;
  const buttons = (
    <>
      {mayRun && (
        <Button size="xs" onClick={ask.open} disabled={!evaluation.entrants.length}>
          Ask a judge
        </Button>
      )}
      {mayWrite && (
        <Button size="xs" variant="default" onClick={bring.open}>
          Judgments from a file
        </Button>
      )}
    </>
  );
  return (
    <Section
      title="Judges"
      about="A judge is a model behind an OpenAI-compatible endpoint, whose answers are never paid for twice, or a preference model of this project."
      actions={!!found.length && buttons}
    >
      {found.length ? (
        <Stack>
          {found.map((judge) => (
            <JudgeCard key={judge.id} project={project} evaluation={evaluation} judge={judge} />
          ))}
          <Juries project={project} evaluation={evaluation} />
        </Stack>
      ) : (
        <Empty title="No judges yet" action={buttons}>
          Several judges can assess the same answers. Their biases, and how far they agree with people, are in
          the report.
        </Empty>
      )}
      <Modal opened={asking && mayRun} onClose={ask.close} title="Ask a judge" size="lg">
        <JudgeForm project={project} evaluation={evaluation} onDone={ask.close} />
      </Modal>
      <ImportFile
        of={JUDGMENTS}
        project={project}
        evaluation={evaluation}
        opened={importing}
        onClose={bring.close}
      />
    </Section>
  );
}

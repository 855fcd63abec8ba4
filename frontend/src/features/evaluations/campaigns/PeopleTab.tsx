import { Button, Modal, Stack } from "@mantine/core";
import type { Evaluation } from "../../../api/evaluation/evaluations";
import { useMay } from "../../../api/accounts/session";
import { Empty } from "../../../shared/Feedback";
import { CampaignForm } from "../../../shared/campaigns/CampaignForm";
import { CampaignCard } from "./CampaignCard";
import { Section } from "../parts";
import { useAsking } from "../useAsking";

/** Campaigns in which people rank the answers blind. */
export function PeopleTab({ project, evaluation }: { project: string; evaluation: Evaluation }) {
  const mayWrite = useMay(project, "write");
  const [making, make] = useAsking();
  const found = evaluation.campaigns;
  const begin = mayWrite && (
    <Button size={found.length ? "xs" : "sm"} onClick={make.open} disabled={!evaluation.entrants.length}>
      Ask people
    </Button>
  );
  return (
    <Section
      title="Annotation by people"
      about="Annotators see one prompt with its answers, unnamed and shuffled for each annotator, and rank, choose, score or correct them."
      actions={!!found.length && begin}
    >
      {found.length ? (
        <Stack>
          {found.map((campaign) => (
            <CampaignCard key={campaign.id} project={project} evaluation={evaluation} campaign={campaign} />
          ))}
        </Stack>
      ) : (
        <Empty title="No campaigns yet" action={begin}>
          A campaign hands out the prompts that all of its entrants have answered. You invite annotators by
          link; they see only their queue.
          {!evaluation.entrants.length && <div>It needs an entrant.</div>}
        </Empty>
      )}
      <Modal opened={making && mayWrite} onClose={make.close} title="Ask people" size="lg">
        <CampaignForm
          project={project}
          evaluation={evaluation.id}
          entrants={evaluation.entrants.map((one) => one.name)}
          judges={evaluation.judges.map((one) => one.name)}
          onDone={make.close}
        />
      </Modal>
    </Section>
  );
}

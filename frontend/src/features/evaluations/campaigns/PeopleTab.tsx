import { Button, Modal, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import type { Evaluation } from "../../../api/evaluation/evaluations";
import { useMay } from "../../../api/accounts/session";
import { Empty } from "../../../shared/Feedback";
import { CampaignCard } from "./CampaignCard";
import { CampaignForm } from "./CampaignForm";
import { Section } from "../parts";

/** Campaigns in which people rank the answers blind. */
export function PeopleTab({ project, evaluation }: { project: string; evaluation: Evaluation }) {
  const mayWrite = useMay(project, "write");
  const [making, make] = useDisclosure();
  const found = evaluation.campaigns;
  const begin = mayWrite && (
    <Button size={found.length ? "xs" : "sm"} onClick={make.open} disabled={evaluation.entrants.length < 2}>
      Ask people
    </Button>
  );
  return (
    <Section
      title="Ranking by people"
      about="Annotators see one prompt and all answers, in an order of their own and without names, and rank them with ties."
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
          {evaluation.entrants.length < 2 && <div>It takes at least two entrants.</div>}
        </Empty>
      )}
      <Modal opened={making} onClose={make.close} title="Ask people to rank" size="lg">
        <CampaignForm project={project} evaluation={evaluation} onDone={make.close} />
      </Modal>
    </Section>
  );
}

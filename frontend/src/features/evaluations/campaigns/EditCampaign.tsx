import { Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type Campaign, changeCampaign } from "../../../api/evaluation/campaigns";
import { type Evaluation, evaluationKeys } from "../../../api/evaluation/evaluations";
import { SendForm } from "../../../shared/forms/SendForm";
import {
  bodyOf,
  CampaignInstructions,
  CampaignSettings,
  type Settings,
} from "../../../shared/campaigns/CampaignSettings";

interface Properties {
  project: string;
  evaluation: Evaluation;
  campaign: Campaign;
  onDone: () => void;
}

/** The settings of a campaign that runs already; only what was changed is sent. */
export function EditCampaign({ project, evaluation, campaign, onDone }: Properties) {
  const client = useQueryClient();
  const [settings, setSettings] = useState<Settings>(() => ({
    instructions: campaign.instructions,
    judge: campaign.judge,
    spanLabels: campaign.span_labels,
    overlap: campaign.overlap,
    minutes: campaign.lock_seconds / 60,
    goldEvery: campaign.gold_every,
    qualify: campaign.qualify_items,
    share: Math.round(1000 * campaign.qualify_share) / 10,
  }));
  const body = bodyOf(campaign.task_type, settings);
  const changed = Object.fromEntries(
    Object.entries(body).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(campaign[name as keyof typeof body]),
    ),
  );
  const save = useMutation({
    // An empty name ends the suggestions; null would leave them.
    mutationFn: () =>
      changeCampaign(project, evaluation.id, campaign.id, {
        ...changed,
        ...("judge" in changed && { judge: body.judge ?? "" }),
      }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: evaluationKeys.all(project) });
      onDone();
    },
  });
  const removed = campaign.span_labels.filter((label) => !settings.spanLabels.includes(label));
  return (
    <SendForm send={save} label="Save" disabled={!Object.keys(changed).length} onLeave={onDone}>
      <CampaignInstructions settings={settings} failure={save.error} onChange={setSettings} />
      <CampaignSettings
        task={campaign.task_type}
        judges={evaluation.judges.map((one) => one.name)}
        settings={settings}
        leastOverlap={campaign.overlap}
        failure={save.error}
        onChange={setSettings}
      />
      <Text size="xs" c="dimmed">
        What annotators have submitted stays as it is.
        {removed.length > 0 && ` Passages flagged as ${removed.join(", ")} stay, too.`}
      </Text>
    </SendForm>
  );
}

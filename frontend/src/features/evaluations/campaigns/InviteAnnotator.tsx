import { Text, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { type Campaign, inviteAnnotator } from "../../../api/evaluation/campaigns";
import type { Evaluation } from "../../../api/evaluation/evaluations";
import { SendForm } from "../../../shared/forms/SendForm";
import { ShownOnce } from "../../../shared/text/ShownOnce";

interface Properties {
  project: string;
  evaluation: Evaluation;
  campaign: Campaign;
  onDone: () => void;
}

/** Makes a link that signs an annotator in, and shows it once. */
export function InviteAnnotator({ project, evaluation, campaign, onDone }: Properties) {
  const [name, setName] = useState("");
  const invite = useMutation({
    mutationFn: () => inviteAnnotator(project, evaluation.id, campaign.id, name.trim() || null),
  });
  if (invite.data) {
    const { annotator, link, expires_at: ends } = invite.data;
    const until = new Date(ends).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
    return (
      <ShownOnce label="Invitation link" secret={new URL(link, window.location.origin).href} onDone={onDone}>
        <Text size="sm">
          Send it only to {annotator}: the first person to open it is signed in as {annotator}, sees this
          queue and nothing else. It works once, until {until}.
        </Text>
      </ShownOnce>
    );
  }
  return (
    <SendForm send={invite} label="Create the link" onLeave={onDone}>
      <TextInput
        label="Name"
        description="Shown with their rankings; inviting someone again makes a new link and revokes the old ones"
        placeholder="annotator-1"
        autoComplete="off"
        data-autofocus
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
    </SendForm>
  );
}

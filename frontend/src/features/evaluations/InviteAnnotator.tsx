import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api, data } from "../../api/client";
import type { Campaign, Evaluation } from "../../api/evaluations";
import { Failure } from "../../shared/Feedback";
import { ShownOnce } from "../../shared/ShownOnce";

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
    mutationFn: () =>
      data(
        api.POST("/api/v1/projects/{project}/evaluations/{evaluation}/campaigns/{campaign}/annotators", {
          params: { path: { project, evaluation: evaluation.id, campaign: campaign.id } },
          body: { name: name.trim() || null },
        }),
      ),
  });
  if (invite.data) {
    const { annotator, link, expires_at: ends } = invite.data;
    const until = new Date(ends).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
    return (
      <ShownOnce label="Invitation link" secret={new URL(link, window.location.origin).href} onDone={onDone}>
        <Text size="sm">
          Send it to {annotator} and to nobody else: whoever opens it first is signed in as {annotator}, sees
          this queue and nothing else. It works once, until {until}.
        </Text>
      </ShownOnce>
    );
  }
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        invite.mutate();
      }}
    >
      <Stack>
        <TextInput
          label="Name"
          description="Shown beside their rankings; for somebody invited before, a new link that ends the old ones"
          placeholder="annotator-1"
          autoComplete="off"
          data-autofocus
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        />
        {invite.error && <Failure error={invite.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onDone}>
            Not now
          </Button>
          <Button type="submit" loading={invite.isPending}>
            Make the link
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

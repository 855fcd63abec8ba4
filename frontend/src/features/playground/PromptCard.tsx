import { Button, Card, Group, NumberInput, Select, Stack, Text, Textarea } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { IconLink, IconPlayerStop, IconSend } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { cancelComparison, type Comparison, ENDED } from "../../api/models/playground";
import { shareAnswers } from "../../api/shareLinks";
import { Failure } from "../../shared/Feedback";
import { ShareButton } from "../../shared/sharing/ShareButton";
import { Turns } from "../../shared/text/Turns";
import type { Draft } from "./draft";
import { SaveButton } from "./SaveButton";

interface Properties {
  project: string;
  draft: Draft;
  /** Names of the reward models. */
  rewards: string[];
  onSearchReward: (part: string) => void;
  comparison: Comparison | undefined;
  /** Whether the person may ask models. */
  asks: boolean;
  asking: boolean;
  error: Error | null;
  onDraft: (draft: Draft) => void;
  onSend: () => void;
}

/** The question, who scores the answers, and what can be done with a comparison. */
export function PromptCard({
  project,
  draft,
  rewards,
  onSearchReward,
  comparison,
  asks,
  asking,
  error,
  onDraft,
  onSend,
}: Properties) {
  const stop = useMutation({
    mutationFn: () => cancelComparison(project, comparison!.id),
  });
  const running = comparison?.columns.some((answer) => !ENDED.includes(answer.state)) ?? false;
  return (
    <Card withBorder>
      <Stack gap="sm">
        {draft.history.length > 0 && (
          <>
            <Turns turns={draft.history} />
            <Button
              variant="subtle"
              color="gray"
              size="compact-xs"
              w="max-content"
              onClick={() => onDraft({ ...draft, history: [] })}
            >
              Clear the conversation
            </Button>
          </>
        )}
        <Textarea
          label="Prompt"
          placeholder="Ask something. Ctrl+Enter sends."
          autosize
          minRows={2}
          maxRows={14}
          value={draft.question}
          onChange={(event) => onDraft({ ...draft, question: event.currentTarget.value })}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) onSend();
          }}
        />
        <Group align="flex-end" gap="sm">
          <Select
            label="Scored by"
            data={rewards}
            onSearchChange={onSearchReward}
            value={draft.reward}
            onChange={(reward) => onDraft({ ...draft, reward })}
            placeholder={rewards.length ? "no one" : "no reward model yet"}
            clearable
            searchable
            w={220}
          />
          <NumberInput
            label="Seed"
            value={draft.seed}
            onChange={(seed) => onDraft({ ...draft, seed: Number(seed) || 0 })}
            min={0}
            allowDecimal={false}
            w={90}
          />
          <Group gap="xs" ml="auto">
            {comparison && (
              <Button
                variant="default"
                leftSection={<IconLink size={16} />}
                onClick={() => {
                  void navigator.clipboard?.writeText(window.location.href);
                  notifications.show({
                    message: "The link shows these answers, and can ask for them again in the same way",
                    color: "gray",
                  });
                }}
              >
                Copy link
              </Button>
            )}
            {comparison && !running && (
              <ShareButton
                project={project}
                title="Share the answers"
                shared={{ kind: "answers" }}
                create={(days) => shareAnswers(project, comparison.id, days)}
              >
                Anyone with a link can read the prompt and these answers without an account, with their
                scores, settings and rewards.
              </ShareButton>
            )}
            {comparison && <SaveButton project={project} comparison={comparison} />}
            {running && (
              <Button
                color="red"
                variant="light"
                leftSection={<IconPlayerStop size={16} />}
                loading={stop.isPending}
                onClick={() => stop.mutate()}
              >
                Stop
              </Button>
            )}
            {asks && (
              <Button
                leftSection={<IconSend size={16} />}
                loading={asking}
                disabled={!draft.question.trim() || !draft.columns.length}
                onClick={onSend}
              >
                Send
              </Button>
            )}
          </Group>
        </Group>
        {!asks && (
          <Text size="sm" c="dimmed">
            Your role in {project} can only read comparisons; asking models needs the role engineer.
          </Text>
        )}
        {error && <Failure error={error} />}
        {stop.error && <Failure error={stop.error} />}
      </Stack>
    </Card>
  );
}

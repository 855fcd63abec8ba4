import {
  ActionIcon,
  Alert,
  Badge,
  Card,
  Group,
  NumberInput,
  Popover,
  Select,
  Stack,
  Text,
  Tooltip,
} from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import { IconAdjustments, IconCheck, IconCopy, IconMessagePlus, IconX } from "@tabler/icons-react";
import { type Answer, ENDED } from "../../api/models/playground";
import { seconds, signed } from "../../shared/format/format";
import { Asked } from "../../shared/AttributeBadges";
import { adapted, shown } from "../../shared/forms/condition";
import { type Column, guides, type Target } from "./draft";
import { GuidanceSlider } from "./GuidanceSlider";
import { Sliders } from "./Sliders";

interface Properties {
  column: Column;
  /** Absent until it was asked for in just this way. */
  answer: Answer | undefined;
  targets: Target[];
  onSearchTarget: (part: string) => void;
  steers: boolean;
  onChange: (to: Partial<Column>) => void;
  /** A value was chosen on a slider: ask again with it. */
  onSteer: (to: Partial<Column>) => void;
  onRemove?: () => void;
  onContinue: (text: string) => void;
}

export function AnswerColumn({
  column,
  answer,
  targets,
  onSearchTarget,
  steers,
  onChange,
  onSteer,
  onRemove,
  onContinue,
}: Properties) {
  const target = targets.find((one) => one.value === column.target);
  const attributes = target?.attributes ?? null;
  const gone = column.target.replace(/^\w+:/, "");
  const title = `${target?.label ?? gone}${column.score === null ? "" : ` at ${shown(column.score)}`}`;
  return (
    <Card withBorder component="article" aria-label={title}>
      <Stack gap="xs" h="100%">
        <Group gap={4} wrap="nowrap">
          <Select
            aria-label="Model"
            size="xs"
            data={[
              ...(target ? [] : [{ value: column.target, label: `${gone} (deleted)`, disabled: true }]),
              ...targets.map(({ value, label }) => ({ value, label })),
            ]}
            value={column.target}
            allowDeselect={false}
            searchable
            onSearchChange={onSearchTarget}
            style={{ flex: 1 }}
            onChange={(value) => {
              const next = targets.find((one) => one.value === value);
              const score = next?.attributes ? adapted(column.score, next.attributes) : null;
              const guidance = next && guides(next) ? column.guidance : 1;
              if (next) onChange({ target: next.value, score, guidance });
            }}
          />
          <DecodingButton column={column} onChange={onChange} />
          {onRemove && (
            <ActionIcon variant="subtle" color="gray" aria-label={`Remove ${title}`} onClick={onRemove}>
              <IconX size={16} />
            </ActionIcon>
          )}
        </Group>
        {attributes ? (
          <Sliders
            attributes={attributes}
            form={target?.form}
            asked={column.score}
            steers={steers}
            onChange={(score) => onChange({ score })}
            onSteer={(score) => onSteer({ score })}
          />
        ) : (
          <Text size="xs" c="dimmed">
            takes no requested reward
          </Text>
        )}
        {target && guides(target) && (
          <GuidanceSlider
            guidance={column.guidance}
            learnedWithout={target.learnedWithout}
            steers={steers}
            onChange={(guidance) => onChange({ guidance })}
            onSteer={(guidance) => onSteer({ guidance })}
          />
        )}
        <AnswerBody answer={answer} onContinue={onContinue} />
      </Stack>
    </Card>
  );
}

function DecodingButton({ column, onChange }: Pick<Properties, "column" | "onChange">) {
  const how = column.temperature === 0 ? "greedy" : `temperature ${column.temperature}`;
  return (
    <Popover position="bottom-end" withArrow trapFocus>
      <Popover.Target>
        <Tooltip label={`Decoding: ${how}`}>
          <ActionIcon variant="subtle" color="gray" aria-label={`Decoding: ${how}`}>
            <IconAdjustments size={16} />
          </ActionIcon>
        </Tooltip>
      </Popover.Target>
      <Popover.Dropdown>
        <Stack gap="xs" w={220}>
          <NumberInput
            label="Temperature"
            description="0 always takes the likeliest token"
            size="xs"
            min={0}
            max={5}
            step={0.1}
            value={column.temperature}
            onChange={(value) => onChange({ temperature: Number(value) || 0 })}
          />
          <NumberInput
            label="Top p"
            size="xs"
            min={0.01}
            max={1}
            step={0.05}
            value={column.topP}
            onChange={(value) => onChange({ topP: Number(value) || 1 })}
          />
          <NumberInput
            label="Max new tokens"
            placeholder="256, or half of a small window"
            size="xs"
            min={1}
            allowDecimal={false}
            value={column.maxNewTokens ?? ""}
            onChange={(value) => onChange({ maxNewTokens: Number(value) || null })}
          />
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

function AnswerBody({
  answer,
  onContinue,
}: {
  answer: Answer | undefined;
  onContinue: (text: string) => void;
}) {
  const clipboard = useClipboard();
  if (!answer) {
    return (
      <Text size="sm" c="dimmed" mih={48}>
        Not asked yet.
      </Text>
    );
  }
  const live = !ENDED.includes(answer.state);
  return (
    <>
      <Asked condition={answer.score} />
      <div style={{ minHeight: 96, flex: 1 }} aria-busy={live} aria-live="polite">
        {answer.text ? (
          <pre className={live ? "text writing" : "text"}>{answer.text}</pre>
        ) : live ? (
          <Text size="sm" c="dimmed">
            {answer.waits_for ?? "writing"}…
          </Text>
        ) : answer.state === "succeeded" ? (
          <Text size="sm" c="dimmed">
            An empty answer: the model stopped at its first token.
          </Text>
        ) : null}
        {answer.state === "cancelled" && (
          <Text size="sm" c="dimmed">
            Stopped.
          </Text>
        )}
        {answer.error && (
          <Alert color="red" title={answer.error.title} mt="xs">
            {answer.error.detail}
            {answer.error.hint && (
              <>
                <br />
                {answer.error.hint}
              </>
            )}
          </Alert>
        )}
      </div>
      <Group gap="xs" justify="space-between" wrap="nowrap" align="flex-end">
        <Group gap={6}>
          {typeof answer.reward === "number" && (
            <Tooltip label="What the reward model gives this answer: raw, and in z units of the policy's labels">
              <Badge className="state-badge" size="lg" data-reward={answer.reward}>
                reward {signed(answer.reward)}
                {typeof answer.reward_z === "number" && ` · ${signed(answer.reward_z)} z`}
              </Badge>
            </Tooltip>
          )}
          <Text size="xs" c="dimmed">
            {facts(answer)}
          </Text>
        </Group>
        {!!answer.text && !live && (
          <Group gap={2} wrap="nowrap">
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label="Copy the answer"
              onClick={() => clipboard.copy(answer.text)}
            >
              {clipboard.copied ? <IconCheck size={16} /> : <IconCopy size={16} />}
            </ActionIcon>
            <Tooltip label="Continue from this answer">
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label="Continue from this answer"
                onClick={() => onContinue(answer.text)}
              >
                <IconMessagePlus size={16} />
              </ActionIcon>
            </Tooltip>
          </Group>
        )}
      </Group>
    </>
  );
}

function facts(answer: Answer): string {
  const parts: string[] = [];
  if (answer.tokens) parts.push(`${answer.tokens} tokens`);
  if (answer.reused) parts.push("answered before");
  else if (answer.seconds) parts.push(seconds(answer.seconds));
  if (answer.state === "succeeded" && answer.finished === false) parts.push("cut at its limit");
  return parts.join(" · ");
}

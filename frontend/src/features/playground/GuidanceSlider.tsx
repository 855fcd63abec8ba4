import { Group, Slider, Text, Tooltip } from "@mantine/core";

const MOST = 10;
const ABOUT =
  "Classifier-free guidance: 1 is none, more follows the requested score more strongly, 0 ignores it.";
const NEVER_WITHOUT =
  "This policy learned no answers without a score (drop_score), which guidance starts from.";

interface Properties {
  guidance: number;
  learnedWithout: boolean;
  steers: boolean;
  onChange: (guidance: number) => void;
  onSteer: (guidance: number) => void;
}

/** How strongly the requested score is followed; each token takes two passes unless it is 1. */
export function GuidanceSlider({ guidance, learnedWithout, steers, onChange, onSteer }: Properties) {
  return (
    <Group gap="sm" wrap="nowrap">
      <Tooltip multiline w={260} label={`${ABOUT}${learnedWithout ? "" : ` ${NEVER_WITHOUT}`}`}>
        <Text size="xs" c="dimmed" w={64}>
          Guidance
        </Text>
      </Tooltip>
      <Slider
        style={{ flex: 1 }}
        size="xs"
        thumbLabel="Guidance"
        min={0}
        max={MOST}
        step={0.5}
        value={Math.min(MOST, guidance)}
        disabled={!steers}
        onChange={onChange}
        onChangeEnd={onSteer}
      />
      <Text size="xs" w={72} ta="right">
        {guidance === 1 ? "none" : guidance}
      </Text>
    </Group>
  );
}

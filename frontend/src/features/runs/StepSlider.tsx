import { Group, Slider, Text } from "@mantine/core";
import { useState } from "react";

/** The place of the step to show: the newest, also of those that are yet to come, until someone looks at another. */
export function useStepPlace(steps: number): [place: number, choose: (place: number) => void] {
  const [chosen, setChosen] = useState<number>();
  const last = steps - 1;
  return [Math.min(chosen ?? last, last), (place) => setChosen(place === last ? undefined : place)];
}

/** The name of a step, and a slider over all of them where there are several. */
export function StepSlider({
  name,
  steps,
  place,
  onChoose,
}: {
  name: string;
  steps: { step: number }[];
  place: number;
  onChoose: (place: number) => void;
}) {
  return (
    <Group gap="lg" align="center" wrap="nowrap" maw={720}>
      <Text size="sm" fw={600} w={110} flex="none" role="status">
        {name}
      </Text>
      {steps.length > 1 && (
        <Slider
          style={{ flex: 1 }}
          thumbLabel="Step"
          min={0}
          max={steps.length - 1}
          step={1}
          value={place}
          label={(at) => steps[at]?.step}
          marks={steps.map((_, at) => ({ value: at }))}
          onChange={onChoose}
        />
      )}
    </Group>
  );
}

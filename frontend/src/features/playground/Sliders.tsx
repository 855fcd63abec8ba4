import { Checkbox, Group, NumberInput, Slider, Stack, Text } from "@mantine/core";
import {
  type Attribute,
  type Condition,
  conditionOf,
  type Form,
  SCORE,
  valuesOf,
  writtenFor,
} from "../../shared/forms/condition";
import { signed } from "../../shared/format/format";

interface Properties {
  attributes: Attribute[];
  form: Form | null | undefined;
  asked: Condition | null;
  steers: boolean;
  onChange: (asked: Condition) => void;
  onSteer: (asked: Condition) => void;
}

/** One slider for each attribute of the policy; where it has several, each may be left out. */
export function Sliders({ attributes, form, asked, steers, onChange, onSteer }: Properties) {
  const values = valuesOf(asked);
  const several = attributes.length > 1;
  return attributes.map((one) => {
    const title = one.name === SCORE ? "Requested reward" : one.name;
    const usual = one.default ?? Math.min(one.high, Math.max(one.low, 0));
    const value = values[one.name];
    const left = value === undefined && (several || asked === "");
    const to = (next: number | undefined) => {
      const others = attributes.filter(({ name }) => name !== one.name);
      return next === undefined
        ? conditionOf(values, others)
        : conditionOf({ ...values, [one.name]: next }, attributes);
    };
    const at = value ?? (one.name === SCORE ? 0 : usual);
    const written = left ? null : writtenFor(at, form);
    const slider = (
      <Group key={one.name} gap="sm" wrap="nowrap">
        {several && (
          <Checkbox
            size="xs"
            w={110}
            label={title}
            checked={!left}
            onChange={(event) => onChange(to(event.currentTarget.checked ? usual : undefined))}
          />
        )}
        <Slider
          style={{ flex: 1 }}
          thumbLabel={title}
          min={one.low}
          max={one.high}
          step={one.step}
          value={at}
          label={(here) => signed(here, Math.min(1, one.decimals))}
          disabled={!steers || left}
          onChange={(next) => onChange(to(next))}
          onChangeEnd={(next) => onSteer(to(next))}
        />
        <NumberInput
          aria-label={`${title}, exactly`}
          size="xs"
          w={72}
          min={one.low}
          max={one.high}
          step={one.step}
          decimalScale={one.decimals}
          disabled={left}
          value={at}
          onChange={(next) => typeof next === "number" && onChange(to(next))}
        />
      </Group>
    );
    if (written === null) return slider;
    return (
      <Stack key={one.name} gap={2}>
        {slider}
        <Text size="xs" c="dimmed">
          written as {written}
        </Text>
      </Stack>
    );
  });
}

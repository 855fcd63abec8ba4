import { Autocomplete, type AutocompleteProps, Stack, Text } from "@mantine/core";
import { type RewardJudge, rewardJudgesQuery } from "../../api/evaluation/rewardJudges";
import { useByName } from "../../shared/forms/useByName";
import { useProject } from "../../shared/links";
import { matching } from "./ThingSelect";

type Properties = Pick<
  AutocompleteProps,
  "label" | "description" | "error" | "required" | "inputWrapperOrder" | "onChange"
> & { value: string };

/** A judge of the project's evaluations as `EVALUATION/JUDGE`, with what is known of its accuracy. */
export function JudgeSelect(properties: Properties) {
  const { value } = properties;
  const project = useProject();
  const { data: judges = [], onSearchChange } = useByName((name) => rewardJudgesQuery(project, name), {
    chosen: [value],
  });
  const chosen = judges.find((judge) => judge.name === value);
  return (
    <Stack gap={4}>
      <Autocomplete
        {...properties}
        data={judges.map((judge) => judge.name)}
        filter={matching}
        renderOption={({ option }) => {
          const judge = judges.find((one) => one.name === option.value);
          return (
            <Stack gap={0}>
              <Text size="sm">{option.value}</Text>
              {judge && (
                <Text size="xs" c="dimmed">
                  {judge.style} · {judge.model} · {accuracyOf(judge)}
                </Text>
              )}
            </Stack>
          );
        }}
        onChange={(name) => {
          onSearchChange(name);
          properties.onChange?.(name);
        }}
        spellCheck={false}
        autoCapitalize="none"
        placeholder="EVALUATION/JUDGE"
      />
      {chosen && (
        <Text size="xs" c={chosen.doubt ? "orange" : "dimmed"}>
          {accuracyOf(chosen)}
        </Text>
      )}
    </Stack>
  );
}

function accuracyOf({ calibration }: RewardJudge): string {
  if (!calibration) return "not calibrated";
  const { value, low } = calibration.accuracy;
  const right = value == null ? "no usable verdict" : `${(100 * value).toFixed(0)}% right`;
  return `${right}${low == null ? "" : ` (from ${(100 * low).toFixed(0)}%)`} on ${calibration.dataset}`;
}

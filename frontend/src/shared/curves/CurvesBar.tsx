import { Group, Input, SegmentedControl, Select, Slider, Switch, Text, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import type { AxisName } from "./axes";
import { type CurveSettings, MOST_SMOOTHING } from "./curveSettings";
import type { Grouping } from "./groupings";
import type { Band } from "./groupMeans";

const EACH = "none";
const AROUND: { value: Band; label: string }[] = [
  { value: "range", label: "Min to max" },
  { value: "deviation", label: "Standard deviation" },
  { value: "none", label: "Mean only" },
];

/** What holds for all charts below it. */
export function CurvesBar({
  settings,
  axes,
  axis,
  groupings,
  groupBy,
  onGroupBy,
  mixed,
  search,
  onSearch,
  onChange,
}: {
  settings: CurveSettings;
  axes: { name: AxisName; title: string }[];
  axis: AxisName;
  /** None of a single run. */
  groupings: Grouping[];
  groupBy: string | null;
  onGroupBy?: (by: string | null) => void;
  /** Whether a group has runs of several methods. */
  mixed: boolean;
  search: string;
  onSearch: (words: string) => void;
  onChange: (some: Partial<CurveSettings>) => void;
}) {
  return (
    <Group gap="lg" mb="md" align="center">
      <TextInput
        aria-label="Search metrics"
        placeholder="Search metrics"
        leftSection={<IconSearch size={16} />}
        value={search}
        onChange={(event) => onSearch(event.currentTarget.value)}
        w={{ base: "100%", xs: 220 }}
      />
      <Group gap="xs" wrap="nowrap">
        <Input.Label component="span" size="sm">
          Smoothing
        </Input.Label>
        <Slider
          w={140}
          min={0}
          max={MOST_SMOOTHING}
          step={0.01}
          label={(value) => value.toFixed(2)}
          thumbLabel="Smoothing"
          value={settings.smoothing}
          onChange={(smoothing) => onChange({ smoothing })}
        />
      </Group>
      {axes.length > 1 && (
        <SegmentedControl
          size="xs"
          aria-label="Horizontal axis"
          value={axis}
          onChange={(name) => onChange({ axis: name as AxisName })}
          data={axes.map(({ name, title }) => ({ value: name, label: title }))}
        />
      )}
      <Switch
        label="log y"
        checked={settings.logY}
        onChange={(event) => onChange({ logY: event.currentTarget.checked })}
      />
      <Switch
        label="log x"
        checked={settings.logX}
        onChange={(event) => onChange({ logX: event.currentTarget.checked })}
      />
      {groupings.length > 0 && (
        <Group gap="xs">
          <Select
            aria-label="Group runs by"
            w={200}
            searchable={groupings.length > 8}
            allowDeselect={false}
            data={[
              { value: EACH, label: "Each run" },
              ...groupings.map(({ by, title }) => ({
                value: by,
                label: by === "all" ? title : `By ${title.toLowerCase() === by ? by : title}`,
              })),
            ]}
            value={groupBy ?? EACH}
            onChange={(by) => onGroupBy?.(by === EACH ? null : by)}
          />
          {groupBy && (
            <SegmentedControl
              size="xs"
              aria-label="Band around the mean"
              value={settings.band}
              onChange={(band) => onChange({ band: band as Band })}
              data={AROUND}
            />
          )}
          {mixed && (
            <Text size="xs" c="orange.8" maw={420}>
              A group has runs of several methods. Where these compute a metric differently, such as a loss,
              its mean has no meaning.
            </Text>
          )}
        </Group>
      )}
    </Group>
  );
}

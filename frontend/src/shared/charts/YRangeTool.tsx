import { Button, NumberInput, Popover, Select, Stack } from "@mantine/core";
import { IconArrowAutofitHeight } from "@tabler/icons-react";
import { useState } from "react";
import { Tool } from "./ChartTools";
import { faultOf, isChosen, OUTLIERS, type YRange } from "./yRange";

const ALL = "none";

interface Properties {
  /** What the chart is of. */
  name: string;
  range: YRange | undefined;
  onRange: (range: YRange | undefined) => void;
}

/** Which part of y a chart shows, from the values by default. */
export function YRangeTool({ name, range, onRange }: Properties) {
  const [opened, open] = useState(false);
  return (
    <Popover opened={opened} onChange={open} width={240} position="bottom-end" trapFocus withinPortal>
      <Popover.Target>
        <Tool
          label={`Range of ${name}`}
          pressed={isChosen(range)}
          icon={<IconArrowAutofitHeight size={16} />}
          onClick={() => open(!opened)}
        />
      </Popover.Target>
      <Popover.Dropdown aria-label={`Range of ${name}`}>
        <Fields range={range ?? {}} onRange={onRange} />
      </Popover.Dropdown>
    </Popover>
  );
}

function Fields({ range, onRange }: { range: YRange; onRange: Properties["onRange"] }) {
  // What is being typed, such as a minus alone, need not be a number yet.
  const [typed, setTyped] = useState<Record<"min" | "max", number | string>>({
    min: range.min ?? "",
    max: range.max ?? "",
  });
  const change = (some: YRange) => {
    const next = { ...range, ...some };
    onRange(isChosen(next) ? next : undefined);
  };
  const end = (which: "min" | "max", label: string, placeholder: string) => (
    <NumberInput
      label={label}
      placeholder={placeholder}
      size="xs"
      value={typed[which]}
      error={which === "min" ? faultOf(range) : undefined}
      onChange={(value) => {
        setTyped({ ...typed, [which]: value });
        if (typeof value === "number") change({ [which]: value });
        else if (value === "") change({ [which]: undefined });
      }}
    />
  );
  return (
    <Stack gap="xs">
      {end("max", "Maximum", "from the values")}
      {end("min", "Minimum", "from the values")}
      <Select
        label="Outliers"
        size="xs"
        allowDeselect={false}
        comboboxProps={{ withinPortal: false }}
        data={[
          { value: ALL, label: "Show all" },
          ...OUTLIERS.map((share) => ({
            value: String(share),
            label: `Leave out ${share}% at either end`,
          })),
        ]}
        value={range.outliers ? String(range.outliers) : ALL}
        onChange={(share) => change({ outliers: share === ALL ? undefined : Number(share) })}
      />
      <Button
        variant="default"
        size="compact-sm"
        disabled={!isChosen(range)}
        onClick={() => {
          setTyped({ min: "", max: "" });
          onRange(undefined);
        }}
      >
        Reset
      </Button>
    </Stack>
  );
}

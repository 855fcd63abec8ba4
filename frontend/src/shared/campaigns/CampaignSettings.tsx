import { NumberInput, Select, SimpleGrid, TagsInput, Textarea } from "@mantine/core";
import { placeOf } from "../../api/evaluation/evaluations";
import type { TaskType } from "../../api/evaluation/ranking";
import { counted } from "../format/format";

/** What of a campaign can be set at any time. An emptied number is `""`. */
export interface Settings {
  instructions: string;
  judge: string | null;
  spanLabels: string[];
  overlap: number | string;
  minutes: number | string;
  goldEvery: number | string;
  qualify: number | string;
  /** In percent. */
  share: number | string;
}

export const NEW: Settings = {
  instructions: "",
  judge: null,
  spanLabels: ["factual error", "unsafe", "repetition"],
  overlap: 1,
  minutes: 10,
  goldEvery: 0,
  qualify: 0,
  share: 70,
};

/** The settings as the API takes them. Corrections have neither gold prompts nor a judge. */
export function bodyOf(task: TaskType, settings: Settings) {
  const correction = task === "correction";
  return {
    instructions: settings.instructions,
    overlap: Number(settings.overlap),
    lock_seconds: Math.round(60 * Number(settings.minutes)),
    gold_every: Number(settings.goldEvery),
    qualify_items: correction ? 0 : Number(settings.qualify),
    qualify_share: Number(settings.share) / 100,
    judge: correction ? null : settings.judge,
    span_labels: settings.spanLabels,
  };
}

/** The settings that are folded, in a line. */
export function settingsInWords(task: TaskType, settings: Settings): string {
  const { judge, overlap, minutes, goldEvery, qualify, spanLabels } = settings;
  const gold =
    Number(qualify) > 0
      ? `${Number(qualify)} gold prompts to qualify`
      : Number(goldEvery) > 0
        ? `a gold prompt every ${Number(goldEvery)}`
        : "gold prompts first, if there are any";
  return [
    `${counted(Number(overlap), "annotator")} per prompt, reserved for ${counted(Number(minutes), "minute")}`,
    task === "correction" ? "" : gold,
    judge ? `suggestions by ${judge}` : "",
    spanLabels.length ? `passages flagged as ${spanLabels.join(", ")}` : "no passages flagged",
  ]
    .filter(Boolean)
    .join("; ");
}

interface Properties {
  task: TaskType;
  /** Judges of the evaluation. */
  judges: string[];
  settings: Settings;
  /** Overlap only rises. */
  leastOverlap?: number;
  failure: Error | null;
  onChange: (settings: Settings) => void;
}

export function CampaignInstructions({ settings, failure, onChange }: Omit<Properties, "task" | "judges">) {
  return (
    <Textarea
      label="Instructions"
      description="What a good answer is, in your words"
      autosize
      minRows={2}
      value={settings.instructions}
      error={placeOf(failure, "instructions")}
      onChange={(event) => onChange({ ...settings, instructions: event.currentTarget.value })}
    />
  );
}

/** The judge, the labels and the numbers of a campaign. */
export function CampaignSettings({
  task,
  judges,
  settings,
  leastOverlap = 1,
  failure,
  onChange,
}: Properties) {
  const error = (field: string) => placeOf(failure, field);
  const set = (change: Partial<Settings>) => onChange({ ...settings, ...change });
  const { judge, spanLabels, overlap, minutes, goldEvery, qualify, share } = settings;
  return (
    <>
      {task !== "correction" && (judges.length > 0 || judge !== null) && (
        <Select
          label="Judge's suggestion"
          description="Annotators see this judge's order or scores, without its name, and can hide them"
          placeholder="none"
          clearable
          data={judge !== null && !judges.includes(judge) ? [judge, ...judges] : judges}
          value={judge}
          error={error("judge")}
          onChange={(name) => set({ judge: name })}
        />
      )}
      <TagsInput
        label="Labels of flagged passages"
        description="What annotators flag a part of an answer with; none: they flag no parts"
        placeholder={spanLabels.length ? "" : "Type one and press Enter"}
        value={spanLabels}
        maxTags={9}
        error={error("span_labels")}
        onChange={(labels) => set({ spanLabels: labels })}
      />
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm" style={{ alignItems: "end" }}>
        <NumberInput
          label="Annotators per prompt"
          description="Two or more show whether they agree"
          min={leastOverlap}
          max={100}
          allowDecimal={false}
          value={overlap}
          error={error("overlap")}
          onChange={(value) => set({ overlap: value })}
        />
        <NumberInput
          label="Time limit"
          description="Minutes for which a prompt is reserved for one annotator"
          min={1}
          max={1440}
          value={minutes}
          error={error("lock_seconds")}
          onChange={(value) => set({ minutes: value })}
        />
        {task !== "correction" && (
          <>
            <NumberInput
              label="Distance of gold prompts"
              description="Every so many prompts, one whose ranks are known (set later); 0: they all come first"
              min={0}
              max={1000}
              allowDecimal={false}
              value={goldEvery}
              error={error("gold_every")}
              onChange={(value) => set({ goldEvery: value })}
            />
            <NumberInput
              label="Gold prompts to qualify"
              description="They come first; until they are passed, no other item is handed out or counts"
              min={0}
              max={50}
              allowDecimal={false}
              value={qualify}
              error={error("qualify_items")}
              onChange={(value) => set({ qualify: value })}
            />
            {Number(qualify) > 0 && (
              <NumberInput
                label="Needed to pass"
                description="Pairs of answers in the known order"
                suffix="%"
                min={50}
                max={100}
                value={share}
                error={error("qualify_share")}
                onChange={(value) => set({ share: value })}
              />
            )}
          </>
        )}
      </SimpleGrid>
    </>
  );
}

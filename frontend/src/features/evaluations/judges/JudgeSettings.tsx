import { Checkbox, NumberInput, SimpleGrid, Stack, Textarea } from "@mantine/core";
import type { Schemas } from "../../../api/client";
import type { JudgeStyle } from "../../../api/evaluation/judges";

export const USUAL: Schemas["JudgeSettings"] = {
  both_orders: true,
  blind: true,
  entrants: null,
  baseline: null,
  temperature: null,
  max_tokens: 2048,
  requests_per_minute: null,
  concurrency: 4,
  reference: true,
  unparsed_threshold: 0.05,
  criteria: null,
  rubric: null,
  seed: 0,
  timeout_seconds: 120,
  attempts: 6,
  repeat_share: 0,
  calibration_threshold: null,
  prompt_price: null,
  completion_price: null,
  budget: null,
};

/** How a judge is asked, what it costs, and when it stops. */
export function JudgeSettings({
  style,
  settings,
  set,
  error,
  children,
}: {
  style: JudgeStyle;
  settings: Schemas["JudgeSettings"];
  set: (change: Partial<Schemas["JudgeSettings"]>) => void;
  error: (field: string) => string | undefined;
  children: React.ReactNode;
}) {
  const number = (value: number | string) => (typeof value === "number" ? value : null);
  if (style === "preference")
    return (
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        {children}
      </SimpleGrid>
    );
  return (
    <Stack gap="sm">
      {(style === "pairwise" || style === "arena_hard") && (
        <Checkbox
          label="Ask in both orders"
          description="Judges favour the first answer; twice the requests measure by how much"
          checked={settings.both_orders}
          onChange={(event) => set({ both_orders: event.currentTarget.checked })}
        />
      )}
      {style === "multi" && (
        <Checkbox
          label="Blind"
          description="Hides names and draws an order for each prompt. Off: the paper's fixed order and names, which bias the judge"
          checked={settings.blind}
          onChange={(event) => set({ blind: event.currentTarget.checked })}
        />
      )}
      <Checkbox
        label="Show reference answers"
        description="For math, reasoning and coding prompts that have one"
        checked={settings.reference}
        onChange={(event) => set({ reference: event.currentTarget.checked })}
      />
      <Textarea
        label="Criteria"
        description="Added to the judge's prompt"
        autosize
        minRows={1}
        value={settings.criteria ?? ""}
        error={error("settings.criteria")}
        onChange={(event) => set({ criteria: event.currentTarget.value || null })}
      />
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <NumberInput
          label="Concurrent requests"
          min={1}
          max={64}
          allowDecimal={false}
          value={settings.concurrency}
          error={error("settings.concurrency")}
          onChange={(value) => set({ concurrency: number(value) ?? USUAL.concurrency })}
        />
        <NumberInput
          label="Requests per minute"
          placeholder="no limit"
          min={0.01}
          value={settings.requests_per_minute ?? ""}
          error={error("settings.requests_per_minute")}
          onChange={(value) => set({ requests_per_minute: number(value) })}
        />
        <NumberInput
          label="Temperature"
          placeholder="0"
          min={0}
          max={2}
          step={0.1}
          value={settings.temperature ?? ""}
          error={error("settings.temperature")}
          onChange={(value) => set({ temperature: number(value) })}
        />
        <NumberInput
          label="Maximum verdict length"
          description="In tokens"
          min={1}
          max={100_000}
          allowDecimal={false}
          value={settings.max_tokens}
          error={error("settings.max_tokens")}
          onChange={(value) => set({ max_tokens: number(value) ?? USUAL.max_tokens })}
        />
        <NumberInput
          label="Timeout"
          description="Seconds for one request"
          min={1}
          max={3600}
          value={settings.timeout_seconds}
          error={error("settings.timeout_seconds")}
          onChange={(value) => set({ timeout_seconds: number(value) ?? USUAL.timeout_seconds })}
        />
        <NumberInput
          label="Attempts per request"
          min={1}
          max={20}
          allowDecimal={false}
          value={settings.attempts}
          error={error("settings.attempts")}
          onChange={(value) => set({ attempts: number(value) ?? USUAL.attempts })}
        />
        <NumberInput
          label="Invalid above"
          description="Percent of unusable verdicts"
          min={0}
          max={100}
          suffix=" %"
          value={100 * settings.unparsed_threshold}
          error={error("settings.unparsed_threshold")}
          onChange={(value) => set({ unparsed_threshold: (number(value) ?? 5) / 100 })}
        />
        <NumberInput
          label="Asked twice"
          description="Percent of the questions, to measure whether it repeats itself"
          min={0}
          max={100}
          suffix=" %"
          value={Math.round(1e6 * settings.repeat_share) / 1e4}
          error={error("settings.repeat_share")}
          onChange={(value) => set({ repeat_share: (number(value) ?? 0) / 100 })}
        />
        <NumberInput
          label="Required accuracy"
          description="Percent of known pairs that it must get right first"
          placeholder="none"
          min={0}
          max={100}
          suffix=" %"
          value={settings.calibration_threshold == null ? "" : 100 * settings.calibration_threshold}
          error={error("settings.calibration_threshold")}
          onChange={(value) => {
            const percent = number(value);
            set({ calibration_threshold: percent === null ? null : percent / 100 });
          }}
        />
        <NumberInput
          label="Price of prompts"
          description="Per million tokens, in your currency"
          placeholder="unknown"
          min={0}
          value={settings.prompt_price ?? ""}
          error={error("settings.prompt_price")}
          onChange={(value) => set({ prompt_price: number(value) })}
        />
        <NumberInput
          label="Price of verdicts"
          description="Per million tokens, in your currency"
          placeholder="unknown"
          min={0}
          value={settings.completion_price ?? ""}
          error={error("settings.completion_price")}
          onChange={(value) => set({ completion_price: number(value) })}
        />
        <NumberInput
          label="Budget"
          description="It stops before a request that could exceed it"
          placeholder="no limit"
          min={0}
          value={settings.budget ?? ""}
          error={error("settings.budget")}
          onChange={(value) => set({ budget: number(value) })}
        />
        {children}
      </SimpleGrid>
    </Stack>
  );
}

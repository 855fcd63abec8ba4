import { Button, Group, NumberInput, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useMay } from "../../../api/accounts/session";
import type { Schemas } from "../../../api/client";
import {
  cleanDataset,
  cleaningPreviewQuery,
  type CleaningRules,
  type Rule,
} from "../../../api/datasets/cleaning";
import { datasetsQuery } from "../../../api/datasets/datasets";
import { placeOf } from "../../../api/evaluation/evaluations";
import { ActionBar } from "../../../shared/ActionBar";
import { Failure } from "../../../shared/Feedback";
import { count, counted } from "../../../shared/format/format";
import { MadeVersion } from "../../../shared/MadeVersion";
import { RuleCard } from "./RuleCard";

/** Up to here a change of the rules is counted immediately; more rows take seconds to minutes. */
const COUNTED_AT_ONCE = 20_000;
const DEFAULTS = {
  empty_round: true,
  wrong_roles: true,
  identical_sides: true,
  min_margin: null as number | null,
  evaluation_overlap: true,
  contradiction: true,
  duplicate: true,
  near_duplicate: true,
  similarity: 0.8,
};
type Rules = typeof DEFAULTS;

/** What each rule would drop from a dataset of pairs, with examples; then a new version without it. */
export function CleaningView({ project, dataset }: { project: string; dataset: Schemas["DatasetOut"] }) {
  const client = useQueryClient();
  const mayWrite = useMay(project, "write");
  const small = dataset.rows <= COUNTED_AT_ONCE;
  const [rules, setRules] = useState<Rules>(DEFAULTS);
  const [asked, setAsked] = useState<Rules | null>(small ? DEFAULTS : null);
  const [name, setName] = useState("");
  const query = useQuery({
    ...cleaningPreviewQuery(project, dataset.name, asked ?? rules),
    enabled: asked !== null,
  });
  const clean = useMutation({
    mutationFn: () =>
      cleanDataset(project, dataset.name, { ...rules, name: name.trim() || null } as CleaningRules),
    onSuccess: () => client.invalidateQueries({ queryKey: datasetsQuery(project).queryKey }),
  });
  const change = (changed: Partial<Rules>) => {
    const next = { ...rules, ...changed };
    setRules(next);
    clean.reset();
    if (small) setAsked(next);
  };
  const found = query.data;
  const current = asked === rules && found && !query.isPlaceholderData && !query.isFetching;
  const isOn = (rule: Rule) =>
    rule === "small_margin" ? rules.min_margin !== null : rules[rule as keyof Rules] === true;
  const dropped = found ? found.rows - found.kept : 0;
  return (
    <Stack>
      <Text size="sm" c="dimmed" maw={720}>
        These rules drop pairs that teach nothing, or the wrong thing; the first rule that fits counts. This
        dataset stays as it is: cleaning makes a new version, which records what was dropped and why.
      </Text>
      {query.error && <Failure error={query.error} retry={() => void query.refetch()} />}
      {!small && asked === null && (
        <Group>
          <Button onClick={() => setAsked(rules)}>Count what would be dropped</Button>
          <Text size="sm" c="dimmed">
            Counting {counted(dataset.rows, "pair")} takes a while.
          </Text>
        </Group>
      )}
      {query.isFetching && !found && (
        <Text size="sm" c="dimmed" aria-busy="true">
          Checking {counted(dataset.rows, "pair")}.
        </Text>
      )}
      {found && (
        <Stack gap="sm">
          {found.rules.map((rule) => (
            <RuleCard
              key={rule.rule}
              rule={rule}
              on={isOn(rule.rule)}
              onChange={(on) =>
                change(rule.rule === "small_margin" ? { min_margin: on ? 0 : null } : { [rule.rule]: on })
              }
            >
              {rule.rule === "small_margin" && rules.min_margin !== null && (
                <NumberInput
                  label="Minimum margin"
                  description="Pairs without a margin are kept"
                  mt="xs"
                  maw={220}
                  value={rules.min_margin}
                  error={placeOf(query.error, "min_margin")}
                  onChange={(value) => typeof value === "number" && change({ min_margin: value })}
                />
              )}
              {rule.rule === "near_duplicate" && rules.near_duplicate && (
                <NumberInput
                  label="Minimum similarity"
                  description="Share of common word 5-grams in prompt, chosen and rejected answer each"
                  mt="xs"
                  maw={320}
                  min={0.5}
                  max={1}
                  step={0.05}
                  value={rules.similarity}
                  error={placeOf(query.error, "similarity")}
                  onChange={(value) =>
                    typeof value === "number" && value >= 0.5 && value <= 1 && change({ similarity: value })
                  }
                />
              )}
              {rule.rule === "evaluation_overlap" && rule.on && (
                <Text size="xs" c="dimmed" mt={4} pl={52}>
                  {counted(found.checked_prompts, "prompt")} of evaluations and prompt sets; held-out pairs
                  may have them
                </Text>
              )}
            </RuleCard>
          ))}
        </Stack>
      )}
      {found && mayWrite && (
        <>
          <TextInput
            label="Name of the new version"
            placeholder={`${dataset.name.replace(/-clean-\d+$/, "")}-clean-1, -2, ...`}
            maw={360}
            value={name}
            error={placeOf(clean.error, "name")}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <ActionBar
            says={
              <span role="status">
                {current
                  ? `${count(found.kept)} of ${count(found.rows)} pairs are kept (${count(found.kept_held_out)} held out), ${count(dropped)} dropped`
                  : query.isFetching
                    ? "Counting"
                    : "The rules have changed since the count"}
              </span>
            }
            error={clean.error}
            outcome={clean.data && <MadeVersion project={project} made={clean.data} />}
          >
            {!small && !current && (
              <Button variant="default" loading={query.isFetching} onClick={() => setAsked(rules)}>
                Count again
              </Button>
            )}
            <Button
              disabled={!current || dropped === 0}
              loading={clean.isPending}
              onClick={() => clean.mutate()}
            >
              {current && dropped === 0 ? "Nothing to clean" : "Clean"}
            </Button>
          </ActionBar>
        </>
      )}
      {found && !mayWrite && (
        <Text size="sm" c="dimmed">
          Your role is read-only.
        </Text>
      )}
    </Stack>
  );
}

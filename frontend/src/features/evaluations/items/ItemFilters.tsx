import { Button, Chip, Group, Select, Stack } from "@mantine/core";
import { IconArrowsExchange } from "@tabler/icons-react";
import type { Evaluation } from "../../../api/evaluation/evaluations";
import type { ItemPage } from "../../../api/evaluation/items";
import { count } from "../../../shared/format/format";
import type { ItemsSearch } from "../../../shared/search";
import { possible } from "./possible";
import { keyOf, labelOf } from "./sources";

interface Properties {
  evaluation: Evaluation;
  filters: ItemsSearch;
  page: ItemPage | undefined;
  onChange: (filters: ItemsSearch) => void;
}

type Outcome = NonNullable<ItemsSearch["outcome"]>;

/** Which items are shown, and in which order: entrants, source, outcome, category and length; only what can be met
 * together. */
export function ItemFilters({ evaluation, filters, page, onChange }: Properties) {
  const names = evaluation.entrants.map((one) => one.name);
  const { a, b, source, other, outcome, category, length, sort } = filters;
  const set = (change: ItemsSearch) => onChange(possible({ ...filters, ...change }));
  const sources = (page?.sources ?? []).map((one) => ({ value: keyOf(one), label: labelOf(one) }));
  const known = (value: string | undefined) =>
    value && !sources.some((one) => one.value === value) ? [{ value, label: value }] : [];
  return (
    <Stack gap="xs">
      <div className="items-filters">
        <Select
          size="xs"
          label="Entrant"
          placeholder="any"
          data={names}
          value={a ?? null}
          clearable
          searchable
          onChange={(value) => set({ a: value ?? undefined, b: value && value !== b ? b : undefined })}
        />
        <Select
          size="xs"
          label="Against"
          placeholder={a ? "any" : "choose an entrant first"}
          data={names.filter((name) => name !== a)}
          value={b ?? null}
          clearable
          searchable
          disabled={!a}
          onChange={(value) => set({ b: value ?? undefined })}
        />
        <Select
          size="xs"
          label="Source"
          placeholder="any"
          data={[...sources, ...known(source)]}
          value={source ?? null}
          clearable
          onChange={(value) => set({ source: value ?? undefined })}
        />
        {outcome === "disagree" && source && (
          <Select
            size="xs"
            label="Disagrees with"
            placeholder="any valid source"
            data={[...sources, ...known(other)].filter((one) => one.value !== source)}
            value={other ?? null}
            clearable
            onChange={(value) => set({ other: value ?? undefined })}
          />
        )}
        {evaluation.categories.length > 1 && (
          <Select
            size="xs"
            label="Category"
            placeholder="any"
            data={evaluation.categories}
            value={category ?? null}
            clearable
            onChange={(value) => set({ category: value ?? undefined })}
          />
        )}
        <Select
          size="xs"
          label="Length of the answer"
          placeholder={a && b ? "any" : "choose two entrants first"}
          data={
            a && b
              ? [
                  { value: "longer", label: `${a} is longer` },
                  { value: "shorter", label: `${a} is shorter` },
                  { value: "similar", label: "similar, up to 1.5 times" },
                ]
              : []
          }
          value={length ?? null}
          clearable
          disabled={!a || !b}
          onChange={(value) => set({ length: (value as ItemsSearch["length"] | null) ?? undefined })}
        />
        <Select
          size="xs"
          label="Sort by"
          placeholder={a && source ? "position" : "choose entrant and source first"}
          data={sortsOf(filters)}
          value={sort ?? null}
          clearable
          disabled={!a || !source}
          onChange={(value) => set({ sort: (value as ItemsSearch["sort"] | null) ?? undefined })}
        />
      </div>
      <Chip.Group
        value={outcome ?? "all"}
        onChange={(value) => set({ outcome: value === "all" ? undefined : (value as Outcome) })}
      >
        <Group gap={6} role="radiogroup" aria-label="Outcome">
          {outcomesFor(filters, page).map(([value, label]) => (
            <Chip key={value} value={value} size="xs">
              {label}
            </Chip>
          ))}
          {a && b && (
            <Button
              size="compact-xs"
              variant="default"
              leftSection={<IconArrowsExchange size={14} />}
              onClick={() =>
                set({
                  a: b,
                  b: a,
                  outcome: turned(outcome),
                  length: turnedLength(length),
                  sort: turnedSort(sort),
                })
              }
            >
              Swap the entrants
            </Button>
          )}
        </Group>
      </Chip.Group>
    </Stack>
  );
}

function outcomesFor({ a, b, source }: ItemsSearch, page: ItemPage | undefined): [Outcome | "all", string][] {
  const counts = a && b && source ? page?.counts : undefined;
  const numbered = (label: string, n: number | undefined) =>
    n === undefined ? label : `${label} (${count(n)})`;
  const chips: [Outcome | "all", string][] = [["all", "All"]];
  if (a && source) {
    chips.push(
      ["win", numbered("Wins", counts?.win)],
      ["tie", numbered("Ties", counts?.tie)],
      ["loss", numbered("Losses", counts?.loss)],
    );
  }
  chips.push(["disagree", "Sources disagree"]);
  if (source?.startsWith("judge:")) chips.push(["flip", "Flips with the order"]);
  return chips;
}

function sortsOf({ a, b, source }: ItemsSearch): { value: string; label: string }[] {
  if (!a || !source) return [];
  const ofOne = [
    { value: "score", label: `score of ${a}, lowest first` },
    { value: "-score", label: `score of ${a}, highest first` },
  ];
  if (!b) return ofOne;
  return [
    { value: "difference", label: `${a} loses most` },
    { value: "-difference", label: `${a} wins most` },
    ...ofOne,
  ];
}

const turnedSort = (sort: ItemsSearch["sort"]): ItemsSearch["sort"] =>
  sort === "difference" ? "-difference" : sort === "-difference" ? "difference" : sort;

const turned = (outcome: ItemsSearch["outcome"]): ItemsSearch["outcome"] =>
  outcome === "win" ? "loss" : outcome === "loss" ? "win" : outcome;

const turnedLength = (length: ItemsSearch["length"]): ItemsSearch["length"] =>
  length === "longer" ? "shorter" : length === "shorter" ? "longer" : length;

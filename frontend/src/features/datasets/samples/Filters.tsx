import {
  Badge,
  Button,
  CloseButton,
  Group,
  NumberInput,
  SegmentedControl,
  Select,
  TextInput,
} from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useDebouncedCallback } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../../../api/client";
import { statisticsQuery } from "../../../api/datasets/datasets";
import { short } from "../../../shared/format/format";
import { ViewsMenu } from "../../../shared/views/ViewsMenu";
import { sampleViews } from "../../../api/views";
import { useMay } from "../../../api/accounts/session";
import { OWN_VIEWS, searchOf, viewOf, viewWords } from "./sampleViews";
import type { DatasetSearch } from "../../../shared/search";

const route = getRouteApi("/p/$project/datasets/$dataset");
const WAIT_MS = 350;

/** The table's filters; they are in the URL, so a link shows the same rows. */
export function Filters({ dataset }: { dataset: Schemas["DatasetOut"] }) {
  const { project } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const mayWrite = useMay(project, "write");
  const rewarded = dataset.kind === "labelled";
  const statistics = useQuery({ ...statisticsQuery(project, dataset.name), enabled: rewarded });
  const [words, setWords] = useState(search.q ?? "");
  const [cleared, setCleared] = useState(0);
  const set = (to: Partial<DatasetSearch>) =>
    void navigate({
      search: (old) => ({ ...old, ...to, row: undefined }),
      replace: true,
      resetScroll: false,
    });
  const setSoon = useDebouncedCallback(set, WAIT_MS);
  const narrowed = [
    search.q,
    search.split,
    search.source,
    search.min,
    search.max,
    search.group,
    search.marked,
  ].some((one) => one !== undefined);
  const range = dataset.rewards;
  const bound = (side: "min" | "max") => (
    <NumberInput
      key={`${side}${cleared}`}
      aria-label={side === "min" ? "Reward from" : "Reward to"}
      placeholder={
        side === "min"
          ? `reward from ${range ? short(range.low) : ""}`
          : `to ${range ? short(range.high) : ""}`
      }
      w={{ base: "calc(50% - 6px)", xs: 170 }}
      defaultValue={search[side]}
      onChange={(value) => setSoon({ [side]: typeof value === "number" ? value : undefined })}
    />
  );
  return (
    <Group gap="sm">
      <TextInput
        aria-label={search.match ? "Search any part" : "Search whole words"}
        placeholder={search.match ? "Search any part of a text" : "Search whole words"}
        leftSection={<IconSearch size={16} />}
        value={words}
        style={{ flex: 1, minWidth: 200 }}
        onChange={(event) => {
          const text = event.currentTarget.value;
          setWords(text);
          setSoon({ q: text.trim() || undefined });
        }}
      />
      <SegmentedControl
        aria-label="What is searched"
        value={search.match ?? "words"}
        onChange={(value) => set({ match: value === "part" ? "part" : undefined })}
        data={[
          { value: "words", label: "Words" },
          { value: "part", label: "Any part" },
        ]}
      />
      <SegmentedControl
        aria-label="Split"
        value={search.split ?? "all"}
        onChange={(value) => set({ split: value === "all" ? undefined : (value as "train" | "held_out") })}
        data={[
          { value: "all", label: "All" },
          { value: "train", label: "Train" },
          { value: "held_out", label: "Held out" },
        ]}
      />
      <Select
        aria-label="Marked"
        placeholder="any row"
        w={{ base: "100%", xs: 140 }}
        clearable
        data={[
          { value: "flagged", label: "Flagged" },
          { value: "commented", label: "Commented" },
          { value: "changed", label: "Changed" },
        ]}
        value={search.marked ?? null}
        onChange={(marked) => set({ marked: (marked as DatasetSearch["marked"]) ?? undefined })}
      />
      {rewarded && (
        <>
          <Select
            aria-label="Source"
            placeholder="any source"
            w={{ base: "100%", xs: 170 }}
            clearable
            searchable
            data={(statistics.data?.sources ?? []).map((one) => one.source)}
            value={search.source ?? null}
            onChange={(source) => set({ source: source ?? undefined })}
          />
          {bound("min")}
          {bound("max")}
        </>
      )}
      {search.group !== undefined && (
        <Badge
          color="gray"
          rightSection={
            <CloseButton
              size="xs"
              aria-label="Answers of every group"
              onClick={() => set({ group: undefined })}
            />
          }
        >
          group {search.group}
        </Badge>
      )}
      <ViewsMenu
        views={sampleViews(project)}
        mayChange={mayWrite}
        own={OWN_VIEWS}
        query={viewOf(search)}
        words={viewWords}
        about="Keeps the search and the filters for everyone in the project, for every dataset"
        example="doubtful-pairs"
        onView={(view) => {
          setWords(view.q ?? "");
          setCleared(cleared + 1);
          set({ group: undefined, ...searchOf(view) });
        }}
      />
      {narrowed && (
        <Button
          variant="subtle"
          color="gray"
          onClick={() => {
            setWords("");
            setCleared(cleared + 1);
            set({
              q: undefined,
              split: undefined,
              source: undefined,
              min: undefined,
              max: undefined,
              group: undefined,
              marked: undefined,
            });
          }}
        >
          Show all
        </Button>
      )}
    </Group>
  );
}

import { Group, NumberInput, Text } from "@mantine/core";
import { useElementSize, useMergedRef } from "@mantine/hooks";
import { getRouteApi } from "@tanstack/react-router";
import { type CSSProperties, useRef, useState } from "react";
import type { Schemas } from "../../../api/client";
import type { Sample, SampleFilters } from "../../../api/datasets/datasets";
import { AttributeBadges } from "../../../shared/AttributeBadges";
import { gradesOf } from "../../../shared/forms/condition";
import { Empty, Failure, Loading } from "../../../shared/Feedback";
import { count, signed, counted } from "../../../shared/format/format";
import { Link } from "../../../shared/links";
import { type Answer, answerText } from "../../../shared/text/answers";
import { Excerpt } from "../../../shared/text/Excerpt";
import { scrollTo, windowOf } from "../../../shared/tables/virtualRows";
import { RowMarks } from "../review/RowMarks";
import { Filters } from "./Filters";
import { SampleDrawer } from "./SampleDrawer";
import { useRows } from "./useRows";

const route = getRouteApi("/p/$project/datasets/$dataset");
const ROW = 40;
/** Characters of a text that may have room in its cell. */
const SHOWN = 300;
type Dataset = Schemas["DatasetOut"];

/** All rows of a dataset, a million of them too: only the rows in the window are fetched and drawn. */
export function SampleTable({ project, dataset }: { project: string; dataset: Dataset }) {
  const search = route.useSearch();
  const filters: SampleFilters = {
    split: search.split,
    q: search.q,
    match: search.q ? search.match : undefined,
    source: search.source,
    reward_min: search.min,
    reward_max: search.max,
    group: search.group,
    marked: search.marked,
  };
  const { ref: sized, height: viewport } = useElementSize();
  const scroller = useRef<HTMLDivElement>(null);
  const body = useMergedRef(sized, scroller);
  const [scrollTop, setScrollTop] = useState(0);
  const [total, setTotal] = useState(dataset.rows);
  const seen = windowOf(total, ROW, scrollTop, viewport || 600);
  const rows = useRows(project, dataset, filters, seen.first, seen.end);
  if (rows.total !== total) setTotal(rows.total);

  // What was scrolled to belongs to the rows of another filter.
  const asked = JSON.stringify(filters);
  const [shown, setShown] = useState(asked);
  if (asked !== shown) {
    setShown(asked);
    setScrollTop(0);
  }
  const rewarded = dataset.kind === "labelled";
  const places = Array.from({ length: Math.max(0, seen.end - seen.first) }, (_, at) => seen.first + at);
  // Once a row with grades was seen, the column stays.
  const [graded, setGraded] = useState(false);
  if (!graded && places.some((place) => Object.keys(gradesOf(rows.at(place)?.sample)).length))
    setGraded(true);
  const columns = columnsOf(dataset.kind);
  const template = [
    "96px",
    ...columns.map(() => "minmax(160px, 1fr)"),
    ...(graded ? ["minmax(160px, 1.4fr)"] : []),
    ...(rewarded ? ["minmax(90px, 150px) 84px"] : []),
  ].join(" ");
  // All columns at their narrowest, with the gaps, the padding and the scrollbar.
  const least = 140 + 172 * (columns.length + Number(graded)) + (rewarded ? 198 : 0);
  const titles = [
    "Row",
    ...columns,
    ...(graded ? ["Attributes"] : []),
    ...(rewarded ? ["Source", "Reward"] : []),
  ];
  return (
    <section aria-label="Samples">
      <Filters dataset={dataset} />
      <Group justify="space-between" my="xs">
        <Text size="sm" c="dimmed" aria-live="polite">
          {rows.count
            ? `${rows.count.exact ? "" : "more than "}${counted(rows.count.rows, "row")}`
            : "counting…"}
        </Text>
        {rows.numbered && rows.total > 200 && (
          <NumberInput
            aria-label="Go to row"
            placeholder="Go to row"
            size="xs"
            w={120}
            min={0}
            max={rows.total - 1}
            allowDecimal={false}
            thousandSeparator=","
            onKeyDown={(event) => {
              if (event.key !== "Enter") return;
              const row = Number(event.currentTarget.value.replaceAll(",", ""));
              scroller.current?.scrollTo({ top: scrollTo(row, rows.total, ROW, viewport) });
            }}
          />
        )}
      </Group>
      {rows.error && <Failure error={rows.error} retry={rows.retry} />}
      {rows.loading ? (
        <Loading />
      ) : rows.total === 0 ? (
        <Empty title="No matching rows">Remove a filter, or search for fewer words.</Empty>
      ) : (
        <div
          role="table"
          aria-label="Rows"
          aria-rowcount={rows.total}
          className="rows"
          style={{ "--rows-width": `${Math.max(560, least)}px` } as CSSProperties}
        >
          <div role="rowgroup">
            <div role="row" className="rows-head" style={{ gridTemplateColumns: template }}>
              {titles.map((name) => (
                <div role="columnheader" key={name}>
                  {name}
                </div>
              ))}
            </div>
          </div>
          <div
            ref={body}
            role="rowgroup"
            className="rows-body"
            // Scrolled by keys as well.
            tabIndex={0}
            aria-label="Rows, to scroll"
            onScroll={(event) => setScrollTop(event.currentTarget.scrollTop)}
            key={asked}
          >
            <div style={{ height: seen.height, position: "relative" }} role="presentation">
              <div style={{ position: "absolute", top: seen.top, left: 0, right: 0 }} role="presentation">
                {places.map((place) => (
                  <RowLine
                    key={place}
                    sample={rows.at(place)}
                    place={place}
                    numbered={rows.numbered}
                    template={template}
                    graded={graded}
                    rewarded={rewarded}
                    open={search.row !== undefined && rows.at(place)?.row === search.row}
                  />
                ))}
              </div>
            </div>
          </div>
        </div>
      )}
      {search.row !== undefined && (
        <SampleDrawer project={project} dataset={dataset} row={search.row} places={places.map(rows.at)} />
      )}
    </section>
  );
}

function columnsOf(kind: string): string[] {
  if (kind === "preferences") return ["Prompt", "Chosen", "Rejected"];
  if (kind === "prompts") return ["Prompt"];
  if (kind === "stepwise") return ["Prompt", "Steps"];
  return ["Prompt", "Response"];
}

interface LineProperties {
  sample: Sample | undefined;
  place: number;
  numbered: boolean;
  template: string;
  graded: boolean;
  rewarded: boolean;
  open: boolean;
}

function RowLine({ sample, place, numbered, template, graded, rewarded, open }: LineProperties) {
  const { project, dataset } = route.useParams();
  const fields = (sample?.sample ?? {}) as Record<string, unknown>;
  const prompt = (fields.prompt as { role: string; content: string }[] | undefined) ?? [];
  const excerpt = (field: string) => {
    const found = sample?.excerpts?.find((one) => one.field === field);
    return found && <Excerpt parts={found.parts} />;
  };
  const texts = [
    excerpt("prompt") ?? prompt.at(-1)?.content.slice(0, SHOWN),
    ...["response", "chosen", "rejected", "completions"]
      .filter((name) => name in fields)
      .map((name) => excerpt(name) ?? answersText(fields[name] as Answer | Answer[]).slice(0, SHOWN)),
  ];
  return (
    <div
      role="row"
      aria-rowindex={place + 1}
      className="rows-line"
      data-open={open || undefined}
      style={{ gridTemplateColumns: template, height: ROW }}
    >
      <div role="cell" className="rows-number">
        {sample ? (
          <Link
            to="/p/$project/datasets/$dataset"
            params={{ project, dataset }}
            search={(old: object) => ({ ...old, row: sample.row })}
            resetScroll={false}
            size="sm"
            className="rows-link"
            aria-label={`Row ${sample.row}`}
          >
            {count(sample.row)}
          </Link>
        ) : (
          <Text size="sm" c="dimmed">
            {numbered ? count(place) : "…"}
          </Text>
        )}
        <RowMarks marks={sample?.marks} />
      </div>
      {texts.map((text, at) => (
        <div role="cell" key={at} className="rows-text">
          {text}
        </div>
      ))}
      {graded && (
        <div role="cell" className="rows-text">
          <AttributeBadges values={gradesOf(fields)} label={`Attributes of row ${place}`} wrap="nowrap" />
        </div>
      )}
      {rewarded && (
        <>
          <div role="cell" className="rows-text">
            {(fields.source as string | undefined) ?? ""}
          </div>
          <div role="cell" style={{ textAlign: "right" }}>
            {signed(sample?.reward)}
          </div>
        </>
      )}
    </div>
  );
}

/** An answer, or the steps of one. */
const answersText = (given: Answer | Answer[]) => [given].flat().map(answerText).join("\n");

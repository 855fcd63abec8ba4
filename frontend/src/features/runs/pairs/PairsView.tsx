import { Button, Card, Group, SegmentedControl, Select, Stack, Text } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useMay } from "../../../api/accounts/session";
import {
  type PairMargin,
  pairMarginsQuery,
  readPairsQuery,
  type RunPairs,
  runPairsQuery,
} from "../../../api/runs/pairs";
import { Empty, Loaded } from "../../../shared/Feedback";
import { count, percent } from "../../../shared/format/format";
import { Link } from "../../../shared/links";
import { extent, inside, type Range } from "./margins";
import { LoadedStep } from "./LoadedStep";
import { MarginBrush } from "./MarginBrush";
import { type Marks, NewVersion } from "./NewVersion";
import { type Mark, PairCard } from "./PairCard";

const PAGE = 10;

interface ViewProperties {
  project: string;
  run: string;
  /** The run is active: there is only the newest step, until there is a newer one. */
  live: boolean;
}

/**
 * The margins of a run's pairs, or of its answers with a thumb, at an evaluated step; a range of them to be read, marked,
 * and dropped or flipped.
 */
export function PairsView({ project, run, live }: ViewProperties) {
  const query = useQuery(runPairsQuery(project, run, live));
  return (
    <Loaded query={query}>
      {(about) =>
        about.steps.length ? (
          <Steps project={project} run={run} live={live} about={about} />
        ) : (
          <Empty title="No step evaluated yet">
            {live
              ? "They appear after the first evaluation."
              : "It ended before its first evaluation; see the log and the timeline."}
          </Empty>
        )
      }
    </Loaded>
  );
}

function Steps({ project, run, live, about }: ViewProperties & { about: RunPairs }) {
  // The newest, also of those that are yet to come, until someone looks at another.
  const [chosen, choose] = useState<number>();
  const last = about.steps.at(-1)!;
  const step = chosen !== undefined && about.steps.includes(chosen) ? chosen : last;
  const [split, setSplit] = useState<string>(about.held_out ? "held_out" : "train");
  const known = about.held_out + about.train;
  const query = useQuery(pairMarginsQuery(project, run, step, known));
  const single = about.of === "answers";
  return (
    <Stack>
      <Text size="sm" c="dimmed" maw={720}>
        A sample of the {about.of} of{" "}
        <Link
          size="sm"
          underline="always"
          to="/p/$project/datasets/$dataset"
          params={{ project, dataset: about.dataset }}
          search={{}}
        >
          {about.dataset}
        </Link>
        , as the model saw them after a step.{" "}
        {single
          ? "The margin is the log-ratio of an answer, without beta, with the other sign where the answer is undesirable."
          : "The margin is the reward of the chosen answer less that of the rejected one."}
        {about.compared_with && (
          <>
            {" "}
            Tokens are coloured by their log-ratio to{" "}
            {about.compared_with === "reference" ? "the reference" : "the model that training started from"}:
            teal where they became likelier, red where less likely.
          </>
        )}
      </Text>
      <Group align="flex-end">
        <Select
          label="After step"
          w={140}
          allowDeselect={false}
          data={about.steps.map(String)}
          value={String(step)}
          onChange={(value) => value && choose(Number(value) === last ? undefined : Number(value))}
        />
        <SegmentedControl
          aria-label="Split"
          value={split}
          onChange={setSplit}
          data={[
            { value: "held_out", label: `Held out: ${count(about.held_out)}`, disabled: !about.held_out },
            { value: "train", label: `Trained on: ${count(about.train)}`, disabled: !about.train },
          ]}
        />
      </Group>
      {live && (
        <Text size="xs" c="dimmed">
          The newest evaluated step. The next evaluation replaces it; when the run has succeeded, all steps
          are here.
        </Text>
      )}
      <LoadedStep query={query} project={project} run={run} live={live}>
        {(pairs) => (
          <Margins
            key={`${step} ${split} ${known} ${query.isPlaceholderData}`}
            project={project}
            run={run}
            live={live}
            step={step}
            dataset={about.dataset}
            of={about.of}
            pairs={pairs.filter((one) => one.split === split)}
            heldOut={new Set(pairs.filter((one) => one.split === "held_out").map((one) => one.row))}
          />
        )}
      </LoadedStep>
    </Stack>
  );
}

interface MarginsProperties extends ViewProperties {
  step: number;
  dataset: string;
  of: RunPairs["of"];
  pairs: PairMargin[];
  /** Rows of the held-out split. */
  heldOut: ReadonlySet<number>;
}

function Margins({ project, run, live, step, dataset, of, pairs, heldOut }: MarginsProperties) {
  const mayWrite = useMay(project, "write");
  const whole = extent(pairs);
  const [range, setRange] = useState<Range>(whole);
  const [shown, setShown] = useState(PAGE);
  // They outlive the page, and hold for all steps of the run.
  const [marks, setMarks] = useLocalStorage<Marks>({ key: `steerboard-marks-${run}`, defaultValue: {} });
  const chosen = inside(pairs, range);
  const wrong = pairs.filter((one) => one.margin < 0);
  const wrongHere = chosen.filter((one) => one.margin < 0);
  // The model is measured against these labels: in bulk it would be measured against what it prefers.
  const inBulk = pairs.every((one) => !heldOut.has(one.row));
  const markAll = (mark: Mark) =>
    setMarks((old) => ({ ...old, ...Object.fromEntries(wrongHere.map((one) => [one.row, mark])) }));
  // While a step is being written, those of this split may be missing.
  if (!pairs.length) return <Empty title={`No ${of} of this split`} />;
  return (
    <Stack>
      <Card withBorder maw={860}>
        <Text size="sm" mb="xs" role="status">
          {count(wrong.length)} of {count(pairs.length)} {of} ({percent(wrong.length / pairs.length, 0)}) are
          wrong-sided; {count(chosen.length)} in the range.
        </Text>
        <MarginBrush
          pairs={pairs}
          whole={whole}
          range={range}
          below={
            of === "pairs" ? "the model prefers the rejected answer" : "the model goes against the thumb"
          }
          onChange={(next) => {
            setRange(next);
            setShown(PAGE);
          }}
        />
        <Group gap="xs" mt="sm">
          <Button
            size="compact-sm"
            variant="default"
            disabled={!wrong.length}
            onClick={() => setRange([whole[0], Math.max(...wrong.map((one) => one.margin))])}
          >
            Wrong-sided only
          </Button>
          <Button size="compact-sm" variant="default" onClick={() => setRange(whole)}>
            All
          </Button>
          {mayWrite &&
            inBulk &&
            (["flip", "drop"] as const).map((mark) => (
              <Button
                key={mark}
                size="compact-sm"
                variant="light"
                disabled={!wrongHere.length}
                onClick={() => markAll(mark)}
              >
                Mark {count(wrongHere.length)} wrong-sided: {mark}
              </Button>
            ))}
        </Group>
        {mayWrite && !inBulk && (
          <Text size="xs" c="dimmed" mt="xs">
            Held-out labels are what the model is measured against, so they are not marked in bulk. Correct a
            single wrong one by hand; it is shown wherever the new version is used.
          </Text>
        )}
      </Card>
      {chunks(chosen.slice(0, shown)).map((part) => (
        <Pairs
          key={placeOf(part[0]!)}
          {...{ project, run, live, step, marks }}
          shown={part}
          onMark={
            mayWrite
              ? (row, mark) =>
                  setMarks(({ [row]: _, ...others }) => (mark ? { ...others, [row]: mark } : others))
              : null
          }
        />
      ))}
      {chosen.length > shown && (
        <Button variant="default" onClick={() => setShown(shown + PAGE)}>
          Show more of {count(chosen.length)}
        </Button>
      )}
      {mayWrite && <NewVersion {...{ project, dataset, marks, heldOut }} onMade={() => setMarks({})} />}
    </Stack>
  );
}

interface PairsProperties extends ViewProperties {
  step: number;
  shown: PairMargin[];
  marks: Marks;
  onMark: ((row: number, mark: Mark | undefined) => void) | null;
}

function Pairs({ project, run, live, step, shown, marks, onMark }: PairsProperties) {
  const rows = [...new Set(shown.map((one) => one.row))];
  const query = useQuery(readPairsQuery(project, run, step, rows));
  const sides = new Set(shown.map(placeOf));
  return (
    <LoadedStep query={query} rows={4} project={project} run={run} live={live}>
      {(read) => {
        const pairs = read.filter((pair) => sides.has(placeOf(pair)));
        const ratios = pairs.flatMap((pair) =>
          [...pair.chosen, ...pair.rejected].map((token) => Math.abs(token.log_ratio)),
        );
        // One odd token must not make all others pale.
        const most = ratios.sort((a, b) => a - b)[Math.floor(ratios.length * 0.98)] ?? 1;
        return (
          <Stack gap="sm">
            {pairs.map((pair) => (
              <PairCard
                key={placeOf(pair)}
                pair={pair}
                most={most}
                mark={marks[pair.row]}
                onMark={onMark && ((mark) => onMark(pair.row, mark))}
              />
            ))}
          </Stack>
        );
      }}
    </LoadedStep>
  );
}

function chunks(pairs: PairMargin[]): PairMargin[][] {
  return Array.from({ length: Math.ceil(pairs.length / PAGE) }, (_, at) =>
    pairs.slice(at * PAGE, (at + 1) * PAGE),
  );
}

/** Its row, and the side that it is: a pair that is learned as two answers has both in one row. */
const placeOf = (one: PairMargin) =>
  `${one.row} ${one.chosen_reward === null ? "rejected" : one.rejected_reward === null ? "chosen" : "both"}`;

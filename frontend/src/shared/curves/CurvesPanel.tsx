import { SimpleGrid, Text, Title, UnstyledButton } from "@mantine/core";
import { IconChevronDown, IconChevronRight } from "@tabler/icons-react";
import { useId, useMemo, useState } from "react";
import type { YRange } from "../charts/yRange";
import { axesOf } from "./axes";
import { CurveCard } from "./CurveCard";
import type { CurveRun } from "./curveLines";
import { CurvesBar } from "./CurvesBar";
import { mixesMethods, type RunTraits } from "./groupings";
import { useRunGroups } from "./useRunGroups";
import { useCurveSettings } from "./curveSettings";
import { type Curve, curvesOf, type Section, sectionsOf } from "./sections";

// The others are closed until someone opens them.
const OPEN = ["pinned", "first"];

/**
 * The curves of one run, or of several in the same charts: groups that open and close, a search, and what holds for all
 * charts. What is chosen is kept for the project in this browser, other than groups: these runs may share a setting
 * that the next ones do not. `pinned` and `onPin` replace what is kept of pins, `groupBy` and `onGroupBy` hold the groups.
 */
export function CurvesPanel({
  project,
  runs,
  traits,
  leaveOut,
  before,
  pinned: given,
  onPin,
  groupBy: askedGroup = null,
  onGroupBy,
  columns,
}: {
  project: string;
  runs: CurveRun[];
  /** What each run can be put into a group by. */
  traits?: RunTraits[];
  /** Metrics that are shown elsewhere. */
  leaveOut?: (name: string) => boolean;
  /** A card before the first chart. */
  before?: React.ReactNode;
  pinned?: string[];
  onPin?: (pinned: string[]) => void;
  groupBy?: string | null;
  /** Without it, runs are not put into groups. */
  onGroupBy?: (by: string | null) => void;
  columns: { base: number; md?: number; lg?: number; xl?: number };
}) {
  const { settings, change } = useCurveSettings(project);
  const [search, setSearch] = useState("");
  const curves = useMemo(() => {
    const all = curvesOf(runs.map((run) => run.series));
    return leaveOut ? all.filter(({ key }) => !leaveOut(key)) : all;
  }, [runs, leaveOut]);
  const axes = useMemo(
    () => axesOf(runs.map((run) => run.series).filter((series) => series.length > 0)),
    [runs],
  );
  const axis = axes.some(({ name }) => name === settings.axis) ? settings.axis : "step";
  const { groupings, groupBy, groups } = useRunGroups(runs, onGroupBy && traits, askedGroup);
  const pinned = given ?? settings.pinned;
  const sections = sectionsOf(curves, pinned, search);
  const pin = ({ key }: Curve) => {
    const next = pinned.includes(key) ? pinned.filter((one) => one !== key) : [...pinned, key];
    if (onPin) onPin(next);
    else change({ pinned: next });
  };
  const isOpen = ({ key }: Section) =>
    search !== "" || (settings.open[key] ?? (OPEN.includes(key) || sections.length === 1));
  return (
    <>
      <CurvesBar
        settings={settings}
        axes={axes}
        axis={axis}
        groupings={groupings}
        groupBy={groupBy}
        onGroupBy={onGroupBy}
        mixed={!!traits && groupBy !== null && mixesMethods(traits, groupBy)}
        search={search}
        onSearch={setSearch}
        onChange={change}
      />
      {!sections.length && (
        <Text size="sm" c="dimmed">
          No metric matches this search.
        </Text>
      )}
      {before && <SimpleGrid cols={columns}>{before}</SimpleGrid>}
      {sections.map((section) => (
        <CurveSection
          key={section.key}
          section={section}
          open={isOpen(section)}
          onToggle={() => change({ open: { ...settings.open, [section.key]: !isOpen(section) } })}
        >
          <SimpleGrid cols={columns} spacing="sm">
            {section.curves.map((curve) => (
              <CurveCard
                key={curve.key}
                project={project}
                curve={curve}
                runs={runs}
                groups={groups}
                band={settings.band}
                axis={axis}
                shown={settings}
                yRange={settings.yRanges[curve.key]}
                onYRange={(range) => change({ yRanges: withRange(settings.yRanges, curve.key, range) })}
                pinned={pinned.includes(curve.key)}
                onPin={() => pin(curve)}
              />
            ))}
          </SimpleGrid>
        </CurveSection>
      ))}
    </>
  );
}

function withRange(
  ranges: Record<string, YRange>,
  key: string,
  range: YRange | undefined,
): Record<string, YRange> {
  const others = Object.entries(ranges).filter(([one]) => one !== key);
  return Object.fromEntries(range ? [...others, [key, range]] : others);
}

function CurveSection({
  section,
  open,
  onToggle,
  children,
}: {
  section: Section;
  open: boolean;
  onToggle: () => void;
  children: React.ReactNode;
}) {
  const id = useId();
  const Chevron = open ? IconChevronDown : IconChevronRight;
  return (
    <section>
      <Title order={3} size="h6" my="xs">
        <UnstyledButton
          fw="inherit"
          fz="inherit"
          mih={28}
          aria-expanded={open}
          aria-controls={open ? id : undefined}
          onClick={onToggle}
          style={{ display: "flex", alignItems: "center", gap: 6 }}
        >
          <Chevron size={16} aria-hidden />
          {section.title}{" "}
          <Text span size="sm" c="dimmed">
            {section.curves.length}
          </Text>
        </UnstyledButton>
      </Title>
      {open && <div id={id}>{children}</div>}
    </section>
  );
}

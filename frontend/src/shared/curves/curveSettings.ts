import { useLocalStorage } from "@mantine/hooks";
import { OUTLIERS, type YRange } from "../charts/yRange";
import { AXES, type AxisName } from "./axes";
import { type Band, BANDS } from "./groupMeans";

/** How someone looks at the curves of a project, in this browser. */
export interface CurveSettings {
  smoothing: number;
  logX: boolean;
  logY: boolean;
  axis: AxisName;
  /** Keys of charts. */
  pinned: string[];
  /** Sections that were opened or closed, by key. */
  open: Record<string, boolean>;
  /** Ranges that a person chose, by the key of their chart. */
  yRanges: Record<string, YRange>;
  /** What is drawn around the mean of a group. */
  band: Band;
}

export const DEFAULTS: CurveSettings = {
  smoothing: 0,
  logX: false,
  logY: false,
  axis: "step",
  pinned: [],
  open: {},
  yRanges: {},
  band: "range",
};

export const MOST_SMOOTHING = 0.99;

/** What was kept, as far as it is usable: an earlier version may have kept something else. */
export function readSettings(text: string | undefined): CurveSettings {
  let kept: Partial<CurveSettings>;
  try {
    kept = (JSON.parse(text ?? "") as Partial<CurveSettings> | null) ?? {};
  } catch {
    return DEFAULTS;
  }
  const { smoothing, logX, logY, axis, pinned, open, yRanges, band } = kept;
  return {
    smoothing: typeof smoothing === "number" && smoothing >= 0 && smoothing <= MOST_SMOOTHING ? smoothing : 0,
    logX: logX === true,
    logY: logY === true,
    axis: AXES.find(({ name }) => name === axis)?.name ?? "step",
    pinned: Array.isArray(pinned) ? pinned.filter((one) => typeof one === "string") : [],
    open: isRecord(open) ? open : {},
    yRanges: isRecord(yRanges)
      ? Object.fromEntries(Object.entries(yRanges).flatMap(([key, one]) => readRange(key, one)))
      : {},
    band: BANDS.find((one) => one === band) ?? "range",
  };
}

const isRecord = (value: unknown): value is Record<string, never> =>
  !!value && typeof value === "object" && !Array.isArray(value);

function readRange(key: string, kept: unknown): [string, YRange][] {
  if (!isRecord(kept)) return [];
  const { min, max, outliers } = kept as { min?: unknown; max?: unknown; outliers?: unknown };
  const range: YRange = {
    ...(Number.isFinite(min) && { min: min as number }),
    ...(Number.isFinite(max) && { max: max as number }),
    ...(OUTLIERS.some((one) => one === outliers) && { outliers: outliers as number }),
  };
  return Object.keys(range).length ? [[key, range]] : [];
}

export function useCurveSettings(project: string) {
  const [settings, keep] = useLocalStorage<CurveSettings>({
    key: `steerboard.curves.${project}`,
    defaultValue: DEFAULTS,
    deserialize: readSettings,
    getInitialValueInEffect: false,
  });
  return { settings, change: (some: Partial<CurveSettings>) => keep({ ...settings, ...some }) };
}

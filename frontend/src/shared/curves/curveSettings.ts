import { useLocalStorage } from "@mantine/hooks";
import { AXES, type AxisName } from "./axes";

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
}

export const DEFAULTS: CurveSettings = {
  smoothing: 0,
  logX: false,
  logY: false,
  axis: "step",
  pinned: [],
  open: {},
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
  const { smoothing, logX, logY, axis, pinned, open } = kept;
  return {
    smoothing: typeof smoothing === "number" && smoothing >= 0 && smoothing <= MOST_SMOOTHING ? smoothing : 0,
    logX: logX === true,
    logY: logY === true,
    axis: AXES.find(({ name }) => name === axis)?.name ?? "step",
    pinned: Array.isArray(pinned) ? pinned.filter((one) => typeof one === "string") : [],
    open: open && typeof open === "object" && !Array.isArray(open) ? open : {},
  };
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

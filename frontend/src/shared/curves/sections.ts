import type { Series } from "../../api/runs/runs";
import { isAxis } from "./axes";

type Group = Series["group"];

/** One chart: a metric, or what several workers and devices measured of the same thing. */
export interface Curve {
  key: string;
  title: string;
  group: Group;
}

export interface Section {
  key: "pinned" | Group;
  title: string;
  curves: Curve[];
}

const TITLES: [Section["key"], string][] = [
  ["pinned", "Pinned"],
  ["first", "Main"],
  ["held_out", "Held out"],
  ["training", "Training"],
  ["cost", "Time, tokens and memory"],
  ["device", "Device"],
];

/** What a worker samples, with its unit. */
const SAMPLED: Record<string, string> = {
  "device/gpu_utilization_percent": "GPU utilisation (%)",
  "device/gpu_memory_gb": "GPU memory (GB)",
  "device/gpu_power_watts": "GPU power (W)",
  "device/cpu_cores": "CPU (cores in use)",
  "device/memory_gb": "Memory (GB)",
};

/** The chart that a metric is in. `device/QUANTITY/WORKER/DEVICE` is in that of its quantity. */
export const curveKey = (name: string) => (name.startsWith("device/") ? name.split("/", 2).join("/") : name);

/** Charts of all runs, in the order in which the server has their metrics; a curve begins with its second step. */
export function curvesOf(runs: readonly (readonly Series[])[]): Curve[] {
  const curves = new Map<string, Curve>();
  for (const { name, group, steps } of runs.flat()) {
    const key = curveKey(name);
    if (steps < 2 || isAxis(name) || curves.has(key)) continue;
    curves.set(key, { key, title: SAMPLED[key] ?? key.replaceAll("_", " "), group });
  }
  return [...curves.values()];
}

/** Non-empty groups of what is searched for; what is pinned is only among the pinned, in the order of pinning. */
export function sectionsOf(curves: readonly Curve[], pinned: readonly string[], search: string): Section[] {
  const words = search
    .toLowerCase()
    .split(/[\s_]+/)
    .filter(Boolean);
  const found = curves.filter(({ title }) => words.every((word) => title.toLowerCase().includes(word)));
  return TITLES.map(([key, title]): Section => {
    const own =
      key === "pinned"
        ? pinned.flatMap((name) => found.filter((curve) => curve.key === name))
        : found.filter((curve) => curve.group === key && !pinned.includes(curve.key));
    return { key, title, curves: own };
  }).filter((section) => section.curves.length > 0);
}

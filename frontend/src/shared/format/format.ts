/** Numbers as people read them, always with their unit. */

export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 100) return `${Math.round(value)} s`;
  const whole = Math.round(value);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

export function between(start: string | null, end: string | null, now: number): number | null {
  if (!start) return null;
  return Math.max(0, ((end ? Date.parse(end) : now) - Date.parse(start)) / 1000);
}

export function signed(value: number | null | undefined, digits = 2): string {
  if (value === null || value === undefined) return "–";
  const text = Math.abs(value).toFixed(digits);
  if (Number(text) === 0) return text;
  return value < 0 ? `−${text}` : text;
}

export function percent(value: number | null | undefined, digits = 1): string {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(digits)}%`;
}

/** A difference of shares, in points of 100. */
export function points(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : `${value > 0 ? "+" : ""}${signed(100 * value, 1)}`;
}

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : value.toLocaleString("en-US");
}

/** A number of things, whose plural ends in s. */
export function counted(value: number | null | undefined, thing: string): string {
  return `${count(value)} ${thing}${value === 1 ? "" : "s"}`;
}

/** `a`, `a and b`, or `a, b and c`. */
export function listed(names: string[]): string {
  const first = names.slice(0, -1).join(", ");
  return first ? `${first} and ${names.at(-1)}` : (names[0] ?? "");
}

export function bytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${at === 0 ? value : value.toFixed(1)} ${units[at]}`;
}

/** What is left of sums that cancel: a mean of zero is -2.1e-17. */
const ROUNDING = 1e-12;

/** A number of any size in at most five characters or so: 0.00012 -> 1.2e-4. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (size < ROUNDING) return "0";
  if (size >= 1e5 || size < 1e-3) return value.toExponential(1).replace("e+", "e");
  if (Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(size >= 100 ? 4 : 3)));
}

const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** `135M`; a smaller count is written out. */
export function compact(value: number): string {
  return value < 1e5 ? count(value) : COMPACT.format(value);
}

/** Numbers of an axis, with as many digits as tell neighbours apart. */
export function ticks(values: number[]): string[] {
  for (let digits = 3; digits < 12; digits += 1) {
    const written = values.map((value) =>
      digits === 3 ? short(value) : String(Number(value.toPrecision(digits))),
    );
    if (new Set(written).size === new Set(values).size) return written;
  }
  return values.map(String);
}

/** A result: counts whole, everything else short. */
export function figure(value: number): string {
  return Number.isInteger(value) ? count(value) : short(value);
}

/** A result of a run by its name: memory is in bytes. */
export function result(name: string, value: number): string {
  return name.startsWith("memory_") ? bytes(value) : figure(value);
}

export function ago(iso: string, now: number): string {
  const past = (now - Date.parse(iso)) / 1000;
  if (past < 5) return "just now";
  if (past < 60) return `${Math.round(past)} s ago`;
  if (past < 3600) return `${Math.round(past / 60)} min ago`;
  if (past < 86400) return `${Math.round(past / 3600)} h ago`;
  return new Date(iso).toLocaleDateString();
}

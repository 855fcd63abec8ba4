/**
 * Which rows of a long table are in its window. Browsers draw nothing taller than some 17 to 33 million pixels, so
 * a table of a million rows is scrolled by a scale: its last row is at the end of the scrollbar all the same.
 */

export const TALLEST = 12_000_000;

export interface Window {
  /** Height of what is scrolled, in pixels. */
  height: number;
  /** Rows to draw: from `first` to before `end`. */
  first: number;
  end: number;
  /** Where the first of them begins, in pixels from the top of what is scrolled. */
  top: number;
}

const MARGIN_ROWS = 4;

export function windowOf(rows: number, rowHeight: number, scrollTop: number, viewport: number): Window {
  const real = rows * rowHeight;
  const height = Math.min(real, TALLEST);
  const travel = Math.max(1, height - viewport);
  const at = Math.min(Math.max(0, scrollTop), travel) * (Math.max(0, real - viewport) / travel);
  const first = Math.max(0, Math.floor(at / rowHeight) - MARGIN_ROWS);
  const end = Math.min(rows, Math.ceil((at + viewport) / rowHeight) + MARGIN_ROWS);
  return { height, first, end, top: Math.min(Math.max(0, scrollTop), travel) - at + first * rowHeight };
}

/** How far to scroll so that `row` is the first one in the window. */
export function scrollTo(row: number, rows: number, rowHeight: number, viewport: number): number {
  const real = rows * rowHeight;
  const travel = Math.min(real, TALLEST) - viewport;
  return Math.max(0, Math.min(travel, (row * rowHeight * travel) / Math.max(1, real - viewport)));
}

/** Colours of lines in a chart, told apart in light and dark. */
const COLORS = ["#1098ad", "#f08c00", "#7048e8", "#e03131", "#2f9e44", "#c2255c", "#1971c2", "#868e96"];

/** The colour of a line by its place; they repeat. */
export function colorOf(line: number): string {
  return COLORS[line % COLORS.length]!;
}

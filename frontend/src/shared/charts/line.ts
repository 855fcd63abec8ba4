export interface Line {
  label: string;
  /** x in ascending order. */
  points: { x: number; y: number | null }[];
  /** A band around the line, one pair a point. */
  band?: { low: number; high: number }[];
  /** Its place among the colours, by default its place in the chart. */
  color?: number;
}

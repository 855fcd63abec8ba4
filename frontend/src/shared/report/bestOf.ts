interface Chosen {
  best_of?: number | null;
  chosen_by?: string | null;
}

/** "best of 8 by REWARD MODEL", or nothing. Reports of earlier versions do not know by which. */
export function bestOf({ best_of: n, chosen_by: reward }: Chosen): string {
  if (!n) return "";
  return reward ? `best of ${n} by ${reward}` : `best of ${n}`;
}

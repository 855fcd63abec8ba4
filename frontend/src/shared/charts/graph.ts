/** Layered layout of a small directed graph: a column a layer, an edge always goes right. */

export interface GraphEdge {
  source: string;
  target: string;
}

export interface Placed {
  id: string;
  column: number;
  row: number;
}

/** Each node is one column after the last of its dependencies; rows follow the mean row of these. */
export function layered(
  ids: string[],
  edges: GraphEdge[],
): { nodes: Placed[]; columns: number; rows: number } {
  const known = new Set(ids);
  const sources = new Map<string, string[]>(ids.map((id) => [id, []]));
  for (const { source, target } of edges) {
    if (known.has(source) && known.has(target) && source !== target) sources.get(target)!.push(source);
  }
  const column = new Map<string, number>();
  const visit = (id: string, path: ReadonlySet<string>): number => {
    const found = column.get(id);
    if (found !== undefined) return found;
    if (path.has(id)) return 0; // a cycle cannot come from the server; never loop on one
    const next = new Set(path).add(id);
    const at = Math.max(-1, ...sources.get(id)!.map((source) => visit(source, next))) + 1;
    column.set(id, at);
    return at;
  };
  for (const id of ids) visit(id, new Set());

  const columns = Math.max(0, ...column.values()) + 1;
  const row = new Map<string, number>();
  let rows = 0;
  for (let at = 0; at < columns; at += 1) {
    const members = ids.filter((id) => column.get(id) === at);
    const wish = new Map(
      members.map((id, place) => {
        const above = sources.get(id)!.map((source) => row.get(source) ?? 0);
        return [id, above.length ? above.reduce((a, b) => a + b, 0) / above.length : place];
      }),
    );
    members.sort((a, b) => wish.get(a)! - wish.get(b)!);
    members.forEach((id, place) => row.set(id, place));
    rows = Math.max(rows, members.length);
  }
  return { nodes: ids.map((id) => ({ id, column: column.get(id)!, row: row.get(id)! })), columns, rows };
}

/** The edges without those that a longer path implies: they would only cross the nodes on that path. */
export function withoutShortcuts(edges: GraphEdge[]): GraphEdge[] {
  const next = new Map<string, Set<string>>();
  for (const { source, target } of edges) {
    next.set(source, (next.get(source) ?? new Set()).add(target));
  }
  const reaches = (from: string, goal: string, seen: Set<string>): boolean =>
    [...(next.get(from) ?? [])].some((one) => {
      if (one === goal) return true;
      if (seen.has(one)) return false;
      seen.add(one);
      return reaches(one, goal, seen);
    });
  return edges.filter(
    ({ source, target }) =>
      ![...next.get(source)!].some((one) => one !== target && reaches(one, target, new Set([source, one]))),
  );
}

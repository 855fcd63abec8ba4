/** Layered layout of a small directed graph: a column a layer, an edge always goes right. */

export interface GraphEdge {
  source: string;
  target: string;
}

export interface Placed {
  id: string;
  column: number;
  /** The position of its top. */
  y: number;
}

/** An edge, and at which height it crosses each column between those of its ends. */
export interface Route extends GraphEdge {
  crossings: { column: number; y: number }[];
}

/** Heights of a node, of the lane in which an edge crosses a column, and of the space between two of these. */
export interface Sizes {
  node: number;
  lane: number;
  gap: number;
}

/**
 * Each node is one column after the last of its dependencies, and near their mean height. An edge over several columns
 * has a lane of its own in those between, so it passes behind no node. Equal edges are drawn once.
 */
export function layered(
  ids: string[],
  edges: GraphEdge[],
  sizes: Sizes,
): { nodes: Placed[]; routes: Route[]; columns: number; height: number } {
  const columnOf = columnsOf(ids, edges);
  const columns = ids.length ? Math.max(...columnOf.values()) + 1 : 0;
  const stacks: Member[][] = Array.from({ length: columns }, () => []);
  const nodes = new Map<string, Member>();
  for (const id of ids) {
    const node: Member = { size: sizes.node, before: [], y: 0 };
    nodes.set(id, node);
    stacks[columnOf.get(id)!]!.push(node);
  }
  const once = [...new Map(edges.map((edge) => [`${edge.source} ${edge.target}`, edge])).values()];
  const routes = once
    .filter(({ source, target }) => nodes.has(source) && nodes.has(target) && source !== target)
    .map((edge) => {
      let last = nodes.get(edge.source)!;
      const lanes: [number, Member][] = [];
      for (let at = columnOf.get(edge.source)! + 1; at < columnOf.get(edge.target)!; at += 1) {
        const lane: Member = { size: sizes.lane, before: [last], y: 0 };
        stacks[at]!.push(lane);
        lanes.push([at, lane]);
        last = lane;
      }
      nodes.get(edge.target)!.before.push(last);
      return { edge, lanes };
    });
  const heights = stacks.map((stack) => stacked(stack, sizes.gap));
  const height = Math.max(0, ...heights);
  // Every column is centred.
  stacks.forEach((stack, at) => stack.forEach((one) => (one.y += (height - heights[at]!) / 2)));
  return {
    nodes: ids.map((id) => ({ id, column: columnOf.get(id)!, y: nodes.get(id)!.y })),
    routes: routes.map(({ edge, lanes }) => ({
      ...edge,
      crossings: lanes.map(([column, lane]) => ({ column, y: lane.y + lane.size / 2 })),
    })),
    columns,
    height,
  };
}

/** A node or a lane, and what leads to it from the column before. */
interface Member {
  size: number;
  before: Member[];
  y: number;
}

/** Places the members of a column from the top down, by the mean height of what leads to them; gives its height. */
function stacked(stack: Member[], gap: number): number {
  const wish = new Map(
    stack.map((one, place) => {
      const above = one.before.map((other) => other.y + other.size / 2);
      return [one, above.length ? above.reduce((a, b) => a + b, 0) / above.length : place];
    }),
  );
  stack.sort((a, b) => wish.get(a)! - wish.get(b)!);
  let y = 0;
  for (const one of stack) {
    one.y = y;
    y += one.size + gap;
  }
  return Math.max(0, y - gap);
}

function columnsOf(ids: string[], edges: GraphEdge[]): Map<string, number> {
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
  return column;
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

import { useMantineTheme } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { layered, type GraphEdge } from "./graph";

export interface GraphNode {
  id: string;
  title: string;
  detail: string;
  /** Mantine colour name of its mark. */
  color: string;
  href?: string;
  /** 0 to 1: a bar along the bottom. */
  share?: number;
}

const WIDTH = 136;
const HEIGHT = 52;
const GAP_X = 34;
const GAP_Y = 18;

export function Graph({ nodes, edges, label }: { nodes: GraphNode[]; edges: GraphEdge[]; label: string }) {
  const theme = useMantineTheme();
  const navigate = useNavigate();
  const shape = useMemo(
    () =>
      layered(
        nodes.map((node) => node.id),
        edges,
      ),
    [nodes, edges],
  );
  const place = new Map(
    shape.nodes.map((node) => {
      const inColumn = shape.nodes.filter((other) => other.column === node.column).length;
      const offset = ((shape.rows - inColumn) * (HEIGHT + GAP_Y)) / 2;
      return [node.id, { x: node.column * (WIDTH + GAP_X), y: offset + node.row * (HEIGHT + GAP_Y) }];
    }),
  );
  const width = shape.columns * (WIDTH + GAP_X) - GAP_X;
  const height = shape.rows * (HEIGHT + GAP_Y) - GAP_Y;
  return (
    <div className="scroll-x" tabIndex={0} role="group" aria-label={label}>
      <svg
        className="graph"
        width={width + 4}
        height={height + 4}
        viewBox={`-2 -2 ${width + 4} ${height + 4}`}
      >
        {edges.map(({ source, target }, at) => {
          const a = place.get(source);
          const b = place.get(target);
          if (!a || !b) return null;
          const [x1, y1, x2, y2] = [a.x + WIDTH, a.y + HEIGHT / 2, b.x, b.y + HEIGHT / 2];
          const bend = Math.max(24, (x2 - x1) / 2);
          return (
            <path
              key={at}
              className="graph-edge"
              d={`M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`}
            />
          );
        })}
        {nodes.map((node) => {
          const at = place.get(node.id)!;
          const color = theme.colors[node.color]?.[6] ?? "currentColor";
          const box = (
            <>
              <rect className="graph-node" width={WIDTH} height={HEIGHT} rx={8} />
              <rect width={5} height={HEIGHT - 16} x={8} y={8} rx={2.5} fill={color} />
              <text x={22} y={22} fontSize={13} fontWeight={600} fill="var(--mantine-color-text)">
                {clip(node.title, 15)}
              </text>
              <text x={22} y={40} fontSize={12} fill="var(--mantine-color-dimmed)">
                {clip(node.detail, 18)}
              </text>
              {node.share !== undefined && (
                <rect
                  x={2}
                  y={HEIGHT - 4}
                  height={3}
                  rx={1.5}
                  width={(WIDTH - 4) * node.share}
                  fill={color}
                />
              )}
            </>
          );
          return (
            <g key={node.id} transform={`translate(${at.x},${at.y})`}>
              <title>{`${node.title}: ${node.detail}`}</title>
              {node.href ? (
                <a
                  href={node.href}
                  onClick={(event) => {
                    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
                    event.preventDefault();
                    void navigate({ href: node.href! });
                  }}
                >
                  {box}
                </a>
              ) : (
                box
              )}
            </g>
          );
        })}
      </svg>
    </div>
  );
}

function clip(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

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

const NARROWEST = 136;
const WIDEST = 224;
const LETTER = 7.8;
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
  // As wide as the longest name needs, within reason; the rest of a longer one is in its tooltip.
  const longest = Math.max(0, ...nodes.map((node) => node.title.length));
  const nodeWidth = Math.round(Math.min(WIDEST, Math.max(NARROWEST, 29 + LETTER * longest)));
  const place = new Map(
    shape.nodes.map((node) => {
      const inColumn = shape.nodes.filter((other) => other.column === node.column).length;
      const offset = ((shape.rows - inColumn) * (HEIGHT + GAP_Y)) / 2;
      return [node.id, { x: node.column * (nodeWidth + GAP_X), y: offset + node.row * (HEIGHT + GAP_Y) }];
    }),
  );
  const width = shape.columns * (nodeWidth + GAP_X) - GAP_X;
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
          const [x1, y1, x2, y2] = [a.x + nodeWidth, a.y + HEIGHT / 2, b.x, b.y + HEIGHT / 2];
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
              <rect className="graph-node" width={nodeWidth} height={HEIGHT} rx={8} />
              <rect width={5} height={HEIGHT - 16} x={8} y={8} rx={2.5} fill={color} />
              <foreignObject x={21} y={4} width={nodeWidth - 29} height={HEIGHT - 8}>
                <div className="graph-title">{node.title}</div>
                <div className="graph-detail">{node.detail}</div>
              </foreignObject>
              {node.share !== undefined && (
                <rect
                  x={2}
                  y={HEIGHT - 4}
                  height={3}
                  rx={1.5}
                  width={(nodeWidth - 4) * Math.min(1, Math.max(0, node.share))}
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

import { useMantineTheme } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { layered, type GraphEdge, type Route } from "./graph";

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
const LANE = 4;

export function Graph({ nodes, edges, label }: { nodes: GraphNode[]; edges: GraphEdge[]; label: string }) {
  const theme = useMantineTheme();
  const navigate = useNavigate();
  const shape = useMemo(
    () =>
      layered(
        nodes.map((node) => node.id),
        edges,
        { node: HEIGHT, lane: LANE, gap: GAP_Y },
      ),
    [nodes, edges],
  );
  // As wide as the longest name needs, within reason; the rest of a longer one is in its tooltip.
  const longest = Math.max(0, ...nodes.map((node) => node.title.length));
  const nodeWidth = Math.round(Math.min(WIDEST, Math.max(NARROWEST, 29 + LETTER * longest)));
  const left = (column: number) => column * (nodeWidth + GAP_X);
  const place = new Map(shape.nodes.map(({ id, column, y }) => [id, { x: left(column), y }]));
  const width = left(shape.columns) - GAP_X;
  const { height } = shape;
  const line = ({ source, target, crossings }: Route): string => {
    const [from, to] = [place.get(source)!, place.get(target)!];
    let [x, y] = [from.x + nodeWidth, from.y + HEIGHT / 2];
    let path = `M${x},${y}`;
    for (const [toX, toY, across] of [
      ...crossings.map((one) => [left(one.column), one.y, nodeWidth] as const),
      [to.x, to.y + HEIGHT / 2, 0] as const,
    ]) {
      const bend = Math.max(GAP_X / 2, (toX - x) / 2);
      path += ` C${x + bend},${y} ${toX - bend},${toY} ${toX},${toY}${across ? ` h${across}` : ""}`;
      [x, y] = [toX + across, toY];
    }
    return path;
  };
  return (
    <div className="scroll-x" tabIndex={0} role="group" aria-label={label}>
      <svg
        className="graph"
        width={width + 4}
        height={height + 4}
        viewBox={`-2 -2 ${width + 4} ${height + 4}`}
      >
        {shape.routes.map((route, at) => (
          <path key={at} className="graph-edge" d={line(route)} />
        ))}
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

import type { KeyboardEvent, PointerEvent } from "react";
import { fitting, NARROWEST, WIDEST } from "../../../shared/search";

/** How far a key moves the edge, in pixels. */
const STEP = 16;

interface Properties {
  title: string;
  column: string;
  width: number | undefined;
  /** Undefined: what the column needs. */
  onWidth: (width: number | undefined) => void;
}

/** The right edge of a heading: dragged, or moved by the arrow keys, it sets the width; a double click gives it back. */
export function ColumnWidth({ title, column, width, onWidth }: Properties) {
  const drag = (start: PointerEvent<HTMLDivElement>) => {
    // The heading would take it for the beginning of a move.
    start.stopPropagation();
    if (start.button !== 0) return;
    const edge = start.currentTarget;
    const heading = edge.parentElement!;
    const table = edge.closest("table")!;
    const begin = heading.getBoundingClientRect().width;
    const at = (event: { clientX: number }) => fitting(begin + event.clientX - start.clientX);
    // While it moves, only the style of the table changes: hundreds of rows are not rendered again.
    const follow = (event: globalThis.PointerEvent) =>
      table.style.setProperty(widthName(column), `${at(event)}px`);
    const done = (event: globalThis.PointerEvent) => {
      edge.removeEventListener("pointermove", follow);
      edge.removeEventListener("pointerup", done);
      edge.removeEventListener("pointercancel", done);
      if (Math.abs(event.clientX - start.clientX) > 1) onWidth(at(event));
    };
    edge.setPointerCapture(start.pointerId);
    edge.addEventListener("pointermove", follow);
    edge.addEventListener("pointerup", done);
    edge.addEventListener("pointercancel", done);
  };
  const press = (event: KeyboardEvent<HTMLDivElement>) => {
    const by = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    onWidth((width ?? event.currentTarget.parentElement!.getBoundingClientRect().width) + by);
  };
  return (
    <div
      className="run-heading-edge"
      role="separator"
      tabIndex={0}
      aria-orientation="vertical"
      aria-label={`Width of ${title}`}
      aria-valuemin={NARROWEST}
      aria-valuemax={WIDEST}
      aria-valuenow={width ?? NARROWEST}
      aria-valuetext={width === undefined ? "automatic" : `${width} pixels`}
      onPointerDown={drag}
      onKeyDown={press}
      onDoubleClick={() => onWidth(undefined)}
    />
  );
}

/** The custom property of the table that holds the width of a column. */
export const widthName = (column: string) =>
  `--column-${[...column].map((letter) => (/[a-z0-9_]/i.test(letter) ? letter : `-${letter.charCodeAt(0)}-`)).join("")}`;

import { useSortable } from "@dnd-kit/sortable";
import { Table, UnstyledButton } from "@mantine/core";
import { IconArrowDown, IconArrowUp, IconGripVertical } from "@tabler/icons-react";
import type { CSSProperties } from "react";
import { ColumnWidth } from "./ColumnWidth";

interface Properties {
  title: string;
  column: string;
  /** What it sorts by; none if it cannot. */
  field: string | undefined;
  sort: string;
  onSort: (sort: string) => void;
  width: number | undefined;
  onWidth: (width: number | undefined) => void;
  /** Left out on a phone. */
  wide?: boolean;
  right?: boolean;
  /** The name stays where it is. */
  fixed?: boolean;
  style?: CSSProperties;
}

/** Sorts by its field: the highest first, then the lowest, then the newest again. Dragged, it moves its column. */
export function ColumnHeading(properties: Properties) {
  const { title, column, field, sort, onSort, width, onWidth, wide, right, fixed, style } = properties;
  const { setNodeRef, setActivatorNodeRef, attributes, listeners, transform, transition, isDragging } =
    useSortable({ id: column, disabled: fixed });
  const down = sort === `-${field}`;
  const up = sort === field;
  const after =
    field === "created" ? (down ? field : `-${field}`) : down ? field! : up ? "-created" : `-${field}`;
  return (
    <Table.Th
      ref={setNodeRef}
      // The keyboard takes it by its grip, the pointer anywhere.
      {...(fixed ? {} : listeners)}
      className={fixed ? "run-heading run-name" : "run-heading"}
      data-dragging={isDragging || undefined}
      data-heading={column}
      // Without its controls, which would be read out with every cell of the column.
      aria-label={title}
      visibleFrom={wide ? "sm" : undefined}
      aria-sort={field && down ? "descending" : field && up ? "ascending" : undefined}
      style={{
        ...style,
        transform: transform ? `translate3d(${transform.x}px, 0, 0)` : undefined,
        transition,
      }}
    >
      <div className="run-heading-parts" data-right={right || undefined}>
        {field ? (
          <UnstyledButton className="sort-button" fz="sm" onClick={() => onSort(after)}>
            {title}
            {down && <IconArrowDown size={14} aria-hidden style={{ verticalAlign: "-2px" }} />}
            {up && <IconArrowUp size={14} aria-hidden style={{ verticalAlign: "-2px" }} />}
          </UnstyledButton>
        ) : (
          <span className="sort-button">{title}</span>
        )}
        {!fixed && (
          <UnstyledButton
            ref={setActivatorNodeRef}
            {...attributes}
            className="run-heading-grip"
            aria-label={`Move ${title}`}
          >
            <IconGripVertical size={14} aria-hidden />
          </UnstyledButton>
        )}
      </div>
      <ColumnWidth title={title} column={column} width={width} onWidth={onWidth} />
    </Table.Th>
  );
}

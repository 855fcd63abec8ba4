import {
  type Announcements,
  closestCenter,
  DndContext,
  KeyboardSensor,
  type Modifier,
  PointerSensor,
  useSensor,
  useSensors,
} from "@dnd-kit/core";
import {
  horizontalListSortingStrategy,
  SortableContext,
  sortableKeyboardCoordinates,
} from "@dnd-kit/sortable";
import type { ReactNode } from "react";

const acrossOnly: Modifier = ({ transform }) => ({ ...transform, y: 0 });
const MODIFIERS = [acrossOnly];

/** Headings below it can be dragged, or moved by the keyboard: Space takes a column up and puts it down. */
export function SortableColumns({
  columns,
  titleOf,
  onMove,
  children,
}: {
  columns: string[];
  titleOf: (column: string) => string;
  /** To the place of another column. */
  onMove: (column: string, to: string) => void;
  children: ReactNode;
}) {
  const sensors = useSensors(
    // A click sorts.
    useSensor(PointerSensor, { activationConstraint: { distance: 6 } }),
    useSensor(KeyboardSensor, { coordinateGetter: sortableKeyboardCoordinates }),
  );
  const place = (column: string | number) =>
    `place ${columns.indexOf(String(column)) + 1} of ${columns.length}`;
  const title = (column: string | number) => titleOf(String(column));
  const announcements: Announcements = {
    onDragStart: ({ active }) => `The column ${title(active.id)} is taken up from ${place(active.id)}.`,
    onDragOver: ({ active, over }) => over && `The column ${title(active.id)} is at ${place(over.id)}.`,
    onDragEnd: ({ active, over }) =>
      over && `The column ${title(active.id)} is put down at ${place(over.id)}.`,
    onDragCancel: ({ active }) => `The column ${title(active.id)} stays where it was.`,
  } as Announcements;
  return (
    <DndContext
      sensors={sensors}
      collisionDetection={closestCenter}
      modifiers={MODIFIERS}
      accessibility={{
        announcements,
        screenReaderInstructions: {
          draggable:
            "Press Space to take the column up, the left and right arrow keys to move it, Space to put it down, and Escape to leave it where it was.",
        },
      }}
      onDragEnd={({ active, over }) => {
        if (over && over.id !== active.id) onMove(String(active.id), String(over.id));
      }}
    >
      <SortableContext items={columns} strategy={horizontalListSortingStrategy}>
        {children}
      </SortableContext>
    </DndContext>
  );
}

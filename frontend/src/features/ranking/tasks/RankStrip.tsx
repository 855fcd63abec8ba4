import {
  closestCenter,
  DndContext,
  PointerSensor,
  useSensor,
  useSensors,
  type DragEndEvent,
} from "@dnd-kit/core";
import { rectSortingStrategy, SortableContext, useSortable } from "@dnd-kit/sortable";
import { Text, UnstyledButton } from "@mantine/core";
import type { MouseEvent } from "react";
import { dragged, inOrder, toggleTie, type Levels } from "./ranks";

interface Properties {
  keys: readonly string[];
  levels: Levels;
  focused: string;
  onFocus: (key: string) => void;
  onChange: (levels: Levels) => void;
}

/** The keys keep their meaning after a click: a button that was pressed by pointer takes no focus. */
const unfocused = { onMouseDown: (event: MouseEvent) => event.preventDefault() };

/** The answers from best to worst. Drag one to its place; the sign between two makes them a tie. */
export function RankStrip({ keys, levels, focused, onFocus, onChange }: Properties) {
  const sensors = useSensors(useSensor(PointerSensor, { activationConstraint: { distance: 4 } }));
  const order = inOrder(keys, levels);
  const ended = ({ active, over }: DragEndEvent) => {
    const key = String(active.id);
    onFocus(key);
    // Dropped where it was, an answer that has no rank yet takes this place all the same.
    if (over && (over.id !== active.id || levels[key] === undefined)) {
      onChange(dragged(keys, levels, key, String(over.id)));
    }
  };
  return (
    <DndContext sensors={sensors} collisionDetection={closestCenter} autoScroll={false} onDragEnd={ended}>
      <SortableContext items={order} strategy={rectSortingStrategy}>
        <div role="group" aria-label="Order, best first" className="rank-strip" data-count={keys.length}>
          {order.map((key, at) => {
            const next = order[at + 1];
            const tied = next !== undefined && levels[key] !== undefined && levels[key] === levels[next];
            return (
              <div key={key} className="rank-place">
                <Chip id={key} level={levels[key]} focused={key === focused} onFocus={onFocus} />
                {next !== undefined && (
                  <UnstyledButton
                    {...unfocused}
                    className="rank-sign"
                    aria-label={
                      tied ? `${key} and ${next} tie: separate them` : `Make ${key} and ${next} a tie`
                    }
                    onClick={() => onChange(toggleTie(keys, levels, at))}
                  >
                    {tied ? "=" : levels[next] === undefined ? "·" : ">"}
                  </UnstyledButton>
                )}
              </div>
            );
          })}
        </div>
      </SortableContext>
    </DndContext>
  );
}

interface ChipProperties {
  id: string;
  level: number | undefined;
  focused: boolean;
  onFocus: (key: string) => void;
}

function Chip({ id, level, focused, onFocus }: ChipProperties) {
  const { setNodeRef, listeners, transform, transition, isDragging } = useSortable({ id });
  return (
    <UnstyledButton
      ref={setNodeRef}
      {...listeners}
      {...unfocused}
      className="rank-chip"
      data-ranked={level !== undefined || undefined}
      data-focused={focused || undefined}
      data-dragging={isDragging || undefined}
      style={{
        transform: transform ? `translate3d(${transform.x}px, ${transform.y}px, 0)` : undefined,
        transition,
      }}
      aria-current={focused || undefined}
      onClick={() => onFocus(id)}
    >
      <span className="unseen">Answer </span>
      <Text span fw={700}>
        {id}
      </Text>
      <span className="unseen">{level === undefined ? " not ranked" : " rank "}</span>
      <Text span size="xs" aria-hidden={level === undefined || undefined}>
        {level ?? "–"}
      </Text>
    </UnstyledButton>
  );
}

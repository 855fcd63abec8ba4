import { ActionIcon, Group, Menu, Tooltip } from "@mantine/core";
import {
  IconArrowsMaximize,
  IconChevronLeft,
  IconChevronRight,
  IconDownload,
  IconZoomIn,
  IconZoomOut,
  IconZoomReset,
} from "@tabler/icons-react";
import { useEffect, useRef } from "react";

const SIZE = 26;

export type Move = "in" | "out" | "left" | "right" | "whole";
export type Format = "csv" | "png" | "svg";

const FORMATS: [Format, string][] = [
  ["csv", "Values as CSV"],
  ["png", "Picture as PNG"],
  ["svg", "Picture as SVG"],
];

/** A small button with a name, which shows on hover and on focus. */
export function Tool({
  label,
  icon,
  pressed,
  ...button
}: {
  label: string;
  icon: React.ReactNode;
  pressed?: boolean;
  onClick: () => void;
  ref?: React.Ref<HTMLButtonElement>;
}) {
  return (
    <Tooltip label={label} events={{ hover: true, focus: true, touch: false }}>
      {/* A popover tells its button what it opens. */}
      <ActionIcon
        {...button}
        size={SIZE}
        variant={pressed ? "light" : "subtle"}
        color={pressed ? undefined : "gray"}
        aria-label={label}
        aria-pressed={pressed}
      >
        {icon}
      </ActionIcon>
    </Tooltip>
  );
}

/** What the keyboard, and a finger, can do to the chart of `y`. */
export function ChartTools({
  y,
  zoomed,
  onMove,
  onEnlarge,
  onExport,
}: {
  y: string;
  zoomed: boolean;
  onMove: (move: Move) => void;
  /** None where the chart has the whole window already. */
  onEnlarge?: () => void;
  onExport: (format: Format) => void;
}) {
  // The button that made the others go away takes the focus to one that stays.
  const stays = useRef<HTMLButtonElement>(null);
  const pressed = useRef(false);
  useEffect(() => {
    if (!zoomed && pressed.current) stays.current?.focus({ preventScroll: true });
    pressed.current = false;
  }, [zoomed]);
  const tool = (move: Move, label: string, icon: React.ReactNode) => (
    <Tool
      label={label}
      icon={icon}
      onClick={() => {
        pressed.current = true;
        onMove(move);
      }}
    />
  );
  return (
    <Group gap={2} wrap="nowrap" role="group" aria-label={`Chart of ${y}`}>
      {zoomed && (
        <>
          {tool("left", "Move left", <IconChevronLeft size={16} />)}
          {tool("right", "Move right", <IconChevronRight size={16} />)}
          {tool("out", "Zoom out", <IconZoomOut size={16} />)}
          {tool("whole", "Whole range", <IconZoomReset size={16} />)}
        </>
      )}
      <Tool ref={stays} label="Zoom in" icon={<IconZoomIn size={16} />} onClick={() => onMove("in")} />
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <ActionIcon size={SIZE} variant="subtle" color="gray" aria-label={`Export ${y}`}>
            <IconDownload size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {FORMATS.map(([format, label]) => (
            <Menu.Item key={format} onClick={() => onExport(format)}>
              {label}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      {onEnlarge && (
        <Tool label={`Enlarge ${y}`} icon={<IconArrowsMaximize size={16} />} onClick={onEnlarge} />
      )}
    </Group>
  );
}

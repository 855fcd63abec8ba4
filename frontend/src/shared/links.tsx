import { Anchor, Button, type AnchorProps } from "@mantine/core";
import { createLink, getRouteApi } from "@tanstack/react-router";
import { forwardRef } from "react";

/** A link inside the application, in Mantine's look. */
export const Link = createLink(
  forwardRef<HTMLAnchorElement, AnchorProps & React.AnchorHTMLAttributes<HTMLAnchorElement>>(
    function MantineLink(properties, ref) {
      return <Anchor ref={ref} {...properties} />;
    },
  ),
);

/** The same in the look of a button; needs `component="a"`. */
export const LinkButton = createLink(Button<"a">);

/** The project that the page belongs to. */
export function useProject(): string {
  return getRouteApi("/p/$project").useParams().project;
}

import { useState } from "react";
import { colorPlaces } from "../charts/colors";

/** A place among the colours for each of `ids`, which it keeps as long as the page is open. */
export function useColorPlaces(ids: readonly string[]): ReadonlyMap<string, number> {
  const [places, setPlaces] = useState(() => colorPlaces(new Map(), ids));
  if (ids.length === places.size && ids.every((id) => places.has(id))) return places;
  const next = colorPlaces(places, ids);
  setPlaces(next);
  return next;
}

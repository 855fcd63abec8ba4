import { useLocalStorage } from "@mantine/hooks";
import { useEffect } from "react";
import type { RunsSearch } from "../../../shared/search";
import { askedOf, columnsOf, DEFAULT, isDefault, readLayout, type TableLayout } from "./tableLayout";

type Asked = Pick<RunsSearch, "column" | "width">;

/**
 * The layout of the list of a project: that of the address, so that a link shows the same to others, or else the one
 * that this browser had last, which then comes into the address.
 */
export function useTableLayout(
  project: string,
  { column, width }: Asked,
  navigate: (change: Asked, replace: boolean) => void,
): { layout: TableLayout; change: (some: Partial<TableLayout>) => void } {
  const [kept, keep] = useLocalStorage<TableLayout | null>({
    key: `steerboard.runs.${project}`,
    defaultValue: null,
    deserialize: readLayout,
    getInitialValueInEffect: false,
  });
  const inAddress = column !== undefined || width !== undefined;
  const layout: TableLayout = inAddress
    ? { columns: columnsOf(column), widths: width ?? {} }
    : (kept ?? DEFAULT);
  const missing = !inAddress && kept !== null && !isDefault(kept);
  useEffect(() => {
    if (missing) navigate(inAddressOf(kept), true);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once for each address that lacks it
  }, [missing]);
  const change = (some: Partial<TableLayout>) => {
    const next = { ...layout, ...some };
    keep(isDefault(next) ? null : next);
    navigate(inAddressOf(next), false);
  };
  return { layout, change };
}

const inAddressOf = ({ columns, widths }: TableLayout): Asked => ({
  column: askedOf(columns),
  width: Object.keys(widths).length ? widths : undefined,
});

import { Alert } from "@mantine/core";
import type { Schemas } from "../api/client";
import { counted } from "./format/format";
import { Link } from "./links";

/** What is shown when an edit has made a new version of a dataset of pairs. */
export function MadeVersion({ project, made }: { project: string; made: Schemas["DatasetOut"] }) {
  return (
    <Alert color="teal" variant="light" title={`${counted(made.rows, "pair")} in ${made.name}`}>
      <Link
        size="sm"
        underline="always"
        to="/p/$project/datasets/$dataset"
        params={{ project, dataset: made.name }}
        search={{}}
      >
        Open the dataset
      </Link>
    </Alert>
  );
}

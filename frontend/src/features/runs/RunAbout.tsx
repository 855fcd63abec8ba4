import { ENDED, type RunDetail } from "../../api/runs/runs";
import { Link, useProject } from "../../shared/links";
import { WithCode } from "../../shared/text/WithCode";
import { When } from "../../shared/When";

/** Under its name: what it is part of, who launched it, and where it waits. */
export function RunAbout({ run }: { run: RunDetail }) {
  const project = useProject();
  const live = !ENDED.includes(run.state);
  return (
    <>
      {run.method ?? run.kind}
      {run.kind !== "history" && ` in pool ${run.pool}`}
      {run.pipeline && (
        <>
          , part of{" "}
          <Link
            underline="always"
            to="/p/$project/pipelines/$pipeline"
            params={{ project, pipeline: run.pipeline.name }}
            size="sm"
          >
            {run.pipeline.name}
          </Link>
        </>
      )}
      {run.evaluation && (
        <>
          , for the evaluation{" "}
          <Link
            underline="always"
            size="sm"
            to="/p/$project/evaluations/$evaluation"
            params={{ project, evaluation: run.evaluation }}
          >
            {run.evaluation}
          </Link>
        </>
      )}
      , launched by {run.created_by} <When at={run.created_at} />
      {live && run.reason && (
        <>
          ; <WithCode text={run.reason} />
        </>
      )}
      {run.queue_position && (
        <>
          , place {run.queue_position} in{" "}
          <Link underline="always" size="sm" to="/p/$project/queue" params={{ project }}>
            the queue
          </Link>
        </>
      )}
    </>
  );
}

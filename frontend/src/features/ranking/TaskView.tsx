import { CorrectionTask } from "./tasks/CorrectionTask";
import { LikertTask } from "./tasks/LikertTask";
import { PairTask } from "./tasks/PairTask";
import { RankTask } from "./tasks/RankTask";
import type { TaskProperties } from "./TaskFrame";

const TASKS = { ranking: RankTask, pairwise: PairTask, likert: LikertTask, correction: CorrectionTask };

/** One item, as its campaign asks about it. */
export function TaskView(properties: TaskProperties) {
  const Task = TASKS[properties.task.task_type];
  return <Task {...properties} />;
}

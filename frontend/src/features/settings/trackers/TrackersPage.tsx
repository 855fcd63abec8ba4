import { changeTracker, deleteTracker, trackersQuery } from "../../../api/accounts/trackers";
import { useProject } from "../../../shared/links";
import { OwnersOnly } from "../OwnersOnly";
import { ManagedList } from "../ManagedList";
import { TrackerCard } from "./TrackerCard";
import { TrackerForm } from "./TrackerForm";

export function TrackersPage() {
  return (
    <OwnersOnly what="Trackers">
      <Trackers />
    </OwnersOnly>
  );
}

function Trackers() {
  const project = useProject();
  return (
    <ManagedList
      query={trackersQuery(project)}
      about={`Runs of ${project} are exported to each tracker while they run: metrics, settings, results and links. A run never waits for a tracker, and never fails because of one.`}
      label="Trackers"
      create="Add a tracker"
      none={{
        title: "No trackers yet",
        text: "With one, the project's runs also appear in MLflow, W&B, TensorBoard or Trackio.",
      }}
      deleting="What was exported stays in the tracker; the links on the runs' pages go. To export nothing for a while, switch it off instead."
      activate={(tracker, active) => changeTracker(project, tracker.id, { active })}
      remove={(tracker) => deleteTracker(project, tracker.id)}
      card={(tracker, actions) => <TrackerCard tracker={tracker} {...actions} />}
      form={(tracker, onDone) => <TrackerForm project={project} tracker={tracker} onDone={onDone} />}
    />
  );
}

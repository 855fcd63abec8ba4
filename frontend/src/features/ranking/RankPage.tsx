import "./ranking.css";
import { ActionIcon, Alert, Button, Group, Progress, Text, Title } from "@mantine/core";
import { useDocumentTitle, useLocalStorage, useNetwork } from "@mantine/hooks";
import { IconChevronLeft, IconCloudOff } from "@tabler/icons-react";
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { createLink, getRouteApi } from "@tanstack/react-router";
import { Problem } from "../../api/client";
import { campaignsToRankQuery } from "../../api/evaluation/ranking";
import { sessionQuery } from "../../api/accounts/session";
import { Empty, Failure, Loading } from "../../shared/Feedback";
import { count } from "../../shared/format/format";
import { Link } from "../../shared/links";
import { TaskView } from "./TaskView";
import { useQueue, type Queue } from "./work/useQueue";

const BackLink = createLink(ActionIcon<"a">);
const route = getRouteApi("/p/$project/rank/$campaign");

/** Where an annotator works: one item after another. */
export function RankPage() {
  const { project, campaign: id } = route.useParams();
  const { data: session } = useSuspenseQuery(sessionQuery);
  const campaigns = useQuery(campaignsToRankQuery(project));
  const campaign = campaigns.data?.campaigns.find((one) => one.id === id);
  const queue = useQueue(project, session.user, id);
  useDocumentTitle(`${campaign?.name ?? "Annotation"} · Steerboard`);
  return (
    <div className="rank-page">
      <Group justify="space-between" gap="sm" wrap="nowrap">
        <Group gap={4} wrap="nowrap" miw={0}>
          <BackLink
            component="a"
            to="/p/$project/rank"
            params={{ project }}
            variant="subtle"
            color="gray"
            aria-label="All campaigns"
          >
            <IconChevronLeft size={18} />
          </BackLink>
          <Title order={1} size="h4" lineClamp={1}>
            {campaign?.name ?? "Annotation"}
          </Title>
        </Group>
        <Standing queue={queue} />
      </Group>
      <Stuck queue={queue} />
      {queue.error && <Failure error={queue.error} retry={queue.again} />}
      {queue.task ? (
        <>
          <Instructions campaign={id} text={campaign?.instructions ?? ""} />
          <TaskView
            key={queue.task.id}
            project={project}
            task={queue.task}
            queue={queue}
            instructions={campaign?.instructions ?? ""}
          />
        </>
      ) : (
        !queue.error && <Nothing project={project} queue={queue} />
      )}
      <div className="unseen" aria-live="polite">
        {queue.task && `Prompt: ${queue.task.prompt.messages.at(-1)?.content ?? ""}`}
      </div>
    </div>
  );
}

/** The owner's instructions are above the first item until they have been read. */
function Instructions({ campaign, text }: { campaign: string; text: string }) {
  const [read, setRead] = useLocalStorage({
    key: `steerboard.instructions.${campaign}`,
    defaultValue: "",
    getInitialValueInEffect: false,
  });
  if (!text || read === text) return null;
  return (
    <Alert
      title="Instructions"
      role="note"
      withCloseButton
      closeButtonLabel="Understood"
      onClose={() => setRead(text)}
    >
      <pre className="text rank-instructions">{text}</pre>
    </Alert>
  );
}

function Standing({ queue }: { queue: Queue }) {
  const total = queue.done + queue.left;
  if (queue.state === "loading" || !total) return null;
  return (
    <Group gap="xs" wrap="nowrap" style={{ flexShrink: 0 }}>
      <Progress value={(100 * queue.done) / total} w={90} aria-label="Done" visibleFrom="xs" />
      <Text size="sm" c="dimmed" aria-live="polite">
        {count(queue.done)} done, {count(queue.left)} left
        {queue.session > 0 && (
          <Text span inherit visibleFrom="sm">
            , {count(queue.session)} of them since you came
          </Text>
        )}
      </Text>
    </Group>
  );
}

function Stuck({ queue }: { queue: Queue }) {
  const { online } = useNetwork();
  const out = queue.problem instanceof Problem && [401, 403].includes(queue.problem.status);
  const away = !online || queue.problem !== null;
  const waiting = `${queue.stuck === 1 ? "1 item is" : `${queue.stuck} items are`} waiting in this browser`;
  return (
    <>
      {away && (
        <Alert color="orange" icon={<IconCloudOff />} role="status" className="rank-away">
          <Group justify="space-between" gap="xs">
            <Text size="sm">
              <strong>{out ? "You are signed out. " : "No connection. "}</strong>
              {out
                ? `Open a new sign-in link in this browser.${queue.stuck ? ` ${waiting} and will be sent then.` : ""}`
                : queue.stuck
                  ? `${waiting} and will be sent when it is back. You can continue.`
                  : "Your work is kept in this browser. You can continue."}
            </Text>
            <Button size="xs" variant="default" onClick={queue.again}>
              Try now
            </Button>
          </Group>
        </Alert>
      )}
      {queue.refused.map((parcel) => (
        <Alert
          key={parcel.submission}
          color="yellow"
          title="One item could not be counted"
          withCloseButton
          closeButtonLabel="Understood"
          onClose={() => queue.forget(parcel.submission)}
        >
          {parcel.refused}
        </Alert>
      ))}
    </>
  );
}

function Nothing({ project, queue }: { project: string; queue: Queue }) {
  const back = (
    <Group gap="xs" justify="center">
      {queue.mayUndo && (
        <Button variant="default" onClick={() => void queue.undo()}>
          Undo the last one
        </Button>
      )}
      <Link to="/p/$project/rank" params={{ project }}>
        All campaigns
      </Link>
    </Group>
  );
  if (queue.state === "loading") return <Loading />;
  if (queue.state === "paused") {
    return (
      <Empty title="Paused" action={back}>
        The owner has paused this campaign. This page continues automatically when they resume it.
      </Empty>
    );
  }
  if (queue.state === "unqualified") {
    return (
      <Empty
        title="Thank you"
        action={
          <Link to="/p/$project/rank" params={{ project }}>
            All campaigns
          </Link>
        }
      >
        Your first items differed too much from what is known, so this campaign has no more for you. Its owner
        can tell you more.
      </Empty>
    );
  }
  if (queue.state === "waiting" || queue.state === "ready") {
    return (
      <Empty title="One moment" action={back}>
        {queue.problem
          ? "The next answers load when the connection is back."
          : "Other annotators are working on the last items. If one becomes free, it appears here."}
      </Empty>
    );
  }
  return (
    <Empty
      title={queue.state === "closed" ? "This campaign is closed" : "All done. Thank you!"}
      action={back}
    >
      {queue.done ? `You did ${count(queue.done)} item${queue.done === 1 ? "" : "s"}.` : null}
    </Empty>
  );
}

import { Badge, Button, Card, Group, Stack, Text, Title } from "@mantine/core";
import { getRouteApi } from "@tanstack/react-router";
import type { Evaluation } from "../../../api/evaluation/evaluations";
import type { ItemDetail, ItemVerdict } from "../../../api/evaluation/items";
import { Link } from "../../../shared/links";
import { verdictText } from "../verdictText";
import { CallTrace } from "./CallTrace";
import { together } from "./together";

const route = getRouteApi("/p/$project/evaluations/$evaluation");

interface Properties {
  project: string;
  evaluation: Evaluation;
  found: ItemDetail;
}

/** Every verdict on the answers, with the judge's text, judge by judge. */
export function ItemVerdicts({ project, evaluation, found }: Properties) {
  const { call } = route.useSearch();
  const navigate = route.useNavigate();
  const trace = (id: number | undefined) =>
    void navigate({ search: (known) => ({ ...known, call: id }), replace: true, resetScroll: false });
  const traced = found.verdicts.find((one) => one.id === call);
  if (!found.verdicts.length) return null;
  return (
    <section aria-label="Verdicts">
      <Title order={3} size="h5" mb="xs">
        Verdicts
      </Title>
      <Stack gap="md">
        {[...together(found.verdicts)].map(([judge, answers]) => (
          <div key={judge}>
            <Group gap="xs" mb={4}>
              <Link
                size="sm"
                fw={600}
                from={route.id}
                to="."
                search={{ tab: "judges", judge }}
                style={{ overflowWrap: "anywhere" }}
              >
                {judge}
              </Link>
              <Text size="xs" c="dimmed">
                {answers[0]![0]!.style.replace("_", " ")}
              </Text>
            </Group>
            <div className="items-pair">
              {answers.map((verdicts) => (
                <Verdict key={verdicts[0]!.id} verdicts={verdicts} onTrace={trace} />
              ))}
            </div>
          </div>
        ))}
        {found.more_verdicts && (
          <Text size="sm" c="dimmed">
            There are more than fit here. Choose two entrants to see all verdicts on them.
          </Text>
        )}
      </Stack>
      {traced && (
        <CallTrace
          project={project}
          evaluation={evaluation.id}
          verdict={traced}
          onClose={() => trace(undefined)}
        />
      )}
    </section>
  );
}

/** The verdicts of one answer of the judge: several where it saw all answers at once. */
function Verdict({ verdicts, onTrace }: { verdicts: ItemVerdict[]; onTrace: (id: number) => void }) {
  const one = verdicts[0]!;
  const text = one.raw?.trim();
  const shownFirst = one.b === null || one.a_first === null ? null : one.a_first ? one.a : one.b;
  return (
    <Card withBorder p="sm">
      <Group justify="space-between" align="flex-start" wrap="nowrap" gap="xs">
        <div style={{ minWidth: 0 }}>
          {verdicts.map((verdict) => (
            <Text key={verdict.id} size="sm" fw={600} style={{ overflowWrap: "anywhere" }}>
              {verdict.b === null && `${verdict.a}: `}
              {verdict.value === null ? (
                <Badge color={verdict.status === "error" ? "red" : "orange"} className="state-badge">
                  {verdict.status}
                </Badge>
              ) : (
                verdictText(verdict)
              )}
            </Text>
          ))}
          <Text size="xs" c="dimmed">
            {[shownFirst === null ? "" : `${shownFirst} shown first`, one.turn > 1 ? `turn ${one.turn}` : ""]
              .filter(Boolean)
              .join(", ")}
          </Text>
        </div>
        {one.called && (
          <Button size="compact-xs" variant="default" onClick={() => onTrace(one.id)}>
            Trace
          </Button>
        )}
      </Group>
      {one.detail && (
        <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
          {one.detail}
        </Text>
      )}
      {text && (
        <div className="evaluation-text" tabIndex={0} role="group" aria-label={`Text of ${one.judge}`}>
          <pre className="text">{text}</pre>
        </div>
      )}
      {one.cut && (
        <Text size="xs" c="dimmed">
          Only the beginning is shown; the export of the verdicts has all of it.
        </Text>
      )}
    </Card>
  );
}

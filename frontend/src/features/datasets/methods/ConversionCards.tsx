import { Button, Card, Group, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { convertDataset, type MethodFit, type Way } from "../../../api/datasets/conversions";
import { datasetsQuery } from "../../../api/datasets/datasets";
import { Failure } from "../../../shared/Feedback";
import { count } from "../../../shared/format/format";

const LOST: Record<string, string> = {
  equal_sides: "with equal answers",
  undesirable: "undesirable",
  alone: "with no other answer to their prompt",
  one_sided: "on prompts with only one kind of thumb",
  tied: "tied",
  not_extreme: "between the best and the worst",
  not_best: "not the best",
  at_mean: "at the mean",
  repeated: "repeated",
  no_reward: "without a reward",
  held_out: "held out",
  no_dialogue: "whose prompt is not a plain dialogue",
};

interface Row {
  fit: MethodFit;
  way: Way;
}

interface Properties {
  project: string;
  dataset: string;
  fits: MethodFit[];
  may: boolean;
}

/** Each conversion with what it loses and gains, and the methods that it is for; a button converts and opens the form. */
export function ConversionCards({ project, dataset, fits, may }: Properties) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const convert = useMutation({
    mutationFn: ({ way }: Row) => convertDataset(project, dataset, way),
    onSuccess: async (made, { fit }) => {
      await client.invalidateQueries({ queryKey: datasetsQuery(project).queryKey });
      await navigate({
        to: "/p/$project/launch/$kind",
        params: { project, kind: fit.method },
        search: { data: made.name },
      });
    },
  });
  const conversions = new Map<string, Row[]>();
  for (const fit of fits)
    for (const way of fit.ways.filter((one) => one.conversion && !one.why_not)) {
      const key = `${way.conversion} ${way.source}`;
      conversions.set(key, [...(conversions.get(key) ?? []), { fit, way }]);
    }
  const asked = convert.isPending ? convert.variables : undefined;
  return (
    <Stack gap="sm">
      {convert.error && <Failure error={convert.error} />}
      <SimpleGrid cols={{ base: 1, lg: 2 }}>
        {[...conversions].map(([key, rows]) => (
          <Card withBorder key={key} component="section" aria-label={titleOf(rows[0]!.way)}>
            <Conversion way={rows[0]!.way} />
            <Group gap="xs" mt="sm">
              {rows.map((row) => (
                <Button
                  key={row.fit.method}
                  size="compact-sm"
                  variant="light"
                  disabled={!may || !!asked}
                  loading={asked?.fit === row.fit && asked.way === row.way}
                  title={`${row.fit.about} ${learned(row.way)}`}
                  aria-label={`${row.fit.label}: ${count(row.way.train)}, convert and launch`}
                  onClick={() => convert.mutate(row)}
                >
                  {row.fit.label}: {count(row.way.train)}
                </Button>
              ))}
            </Group>
          </Card>
        ))}
      </SimpleGrid>
      <Text size="xs" c="dimmed">
        {may
          ? "Each button makes the new dataset and opens the method's form; its number counts the rows to learn from."
          : "Your role is read-only. The numbers count the rows to learn from."}
      </Text>
    </Stack>
  );
}

function Conversion({ way }: { way: Way }) {
  const why = Object.entries(way.lost_by).map(([reason, rows]) => `${count(rows)} ${LOST[reason] ?? reason}`);
  return (
    <>
      <Title order={3} size="h6">
        {titleOf(way)}
      </Title>
      <Text size="sm" c="dimmed">
        {way.about}
      </Text>
      <Text size="sm" mt={4}>
        {count(way.read)} rows become {count(way.rows)} {way.kind}: {count(way.lost)} lost
        {why.length > 0 && ` (${why.join(", ")})`}, {count(way.gained)} gained, {count(way.tied)} tied.
      </Text>
    </>
  );
}

function titleOf(way: Way): string {
  return way.source ? `${way.title}: ${way.source}` : way.title;
}

function learned(way: Way): string {
  const left = way.left_out ? `, ${count(way.left_out)} left out` : "";
  return `${count(way.train)} to learn from, ${count(way.held_out)} held out${left}.`;
}

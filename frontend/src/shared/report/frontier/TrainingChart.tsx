import { Box, Group, Text } from "@mantine/core";
import { useState } from "react";
import { colorOf } from "../../charts/colors";
import { count, short } from "../../format/format";
import { Link, useProject } from "../../links";
import { Plane } from "./Plane";
import { nearest, type TrainingPoint } from "./trainingCurve";

export interface TrainedCurve {
  /** The entrants that its model is. */
  label: string;
  run: string;
  points: TrainingPoint[];
}

/** Reward against KL, step by step: a line a run, hollow where it begins and full where it ends. */
export function TrainingChart({ curves }: { curves: TrainedCurve[] }) {
  const project = useProject();
  const [read, setRead] = useState<{ curve: number; point: number } | null>(null);
  const points = curves.flatMap((curve) => curve.points);
  const ends = curves.map((curve) => `${curve.label} ends at ${written(curve.points.at(-1)!)}`);
  const shown = read && curves[read.curve]?.points[read.point];
  return (
    <div>
      <Group gap="md" mb={4} role="list" aria-label="Runs">
        {curves.map((curve, at) => (
          <Group key={curve.run} gap={6} wrap="nowrap" role="listitem">
            <Box w={16} h={3} bg={colorOf(at)} style={{ borderRadius: 2, flexShrink: 0 }} />
            <Link size="sm" to="/p/$project/runs/$run" params={{ project, run: curve.run }}>
              {curve.label}
            </Link>
          </Group>
        ))}
      </Group>
      <Plane
        name="Training curves"
        about={`Reward in training over KL to the run's reference. ${ends.join("; ")}`}
        x={{ label: "KL to the run's reference (nats)", values: [0, ...points.map((one) => one.kl)] }}
        y={{ label: "reward in training", values: points.map((one) => one.reward) }}
        onPoint={(at, { x, y }) => {
          const drawn = curves.map((curve) =>
            curve.points.map((one) => ({ left: x(one.kl), top: y(one.reward) })),
          );
          setRead(at && nearest(drawn, at));
        }}
      >
        {({ x, y }) =>
          curves.map((curve, at) => {
            const [first, last] = [curve.points[0]!, curve.points.at(-1)!];
            const on = read?.curve === at ? curve.points[read.point] : undefined;
            return (
              <g key={curve.run} className="frontier-training" style={{ color: colorOf(at) }}>
                <polyline points={curve.points.map((one) => `${x(one.kl)},${y(one.reward)}`).join(" ")} />
                <circle data-begin cx={x(first.kl)} cy={y(first.reward)} r={4} />
                <circle cx={x(last.kl)} cy={y(last.reward)} r={4.5} />
                {on && <circle cx={x(on.kl)} cy={y(on.reward)} r={6} data-begin />}
              </g>
            );
          })
        }
      </Plane>
      <Text size="sm" c="dimmed" mih="1.5em" data-read>
        {shown
          ? `${curves[read.curve]!.label}, step ${count(shown.step)}: ${written(shown)}`
          : "Hover over a line to read a step."}
      </Text>
    </div>
  );
}

const written = ({ reward, kl }: TrainingPoint) => `reward ${short(reward)} at ${short(kl)} nats`;

import { Badge, Card, Group, SegmentedControl, SimpleGrid, Stack, Text } from "@mantine/core";
import type { PairRead } from "../../../api/runs/pairs";
import { count, signed } from "../../../shared/format/format";
import { IconThumbDown, IconThumbUp } from "@tabler/icons-react";
import { AnswerBody } from "../../../shared/text/AnswerBody";
import type { Answer } from "../../../shared/text/answers";
import { Turns } from "../../../shared/text/Turns";
import { TokenText } from "./TokenText";

export type Mark = "drop" | "flip";

const THUMB = { chosen: "desirable", rejected: "undesirable" };
const ICON = { size: 14, style: { verticalAlign: "-2px" }, "aria-hidden": true } as const;

interface Properties {
  pair: PairRead;
  /** The log-ratio that gets the full colour. */
  most: number;
  mark: Mark | undefined;
  onMark: ((mark: Mark | undefined) => void) | null;
}

const SIDES = ["chosen", "rejected"] as const;

/**
 * One pair with both answers, or a single answer with its thumb, token by token where log-ratios are known, and the mark
 * that drops or flips it.
 */
export function PairCard({ pair, most, mark, onMark }: Properties) {
  const sample = pair.sample.sample as {
    prompt: { role: string; content: string }[];
    chosen?: Answer;
    rejected?: Answer;
    response?: Answer;
  };
  const sides = SIDES.filter((side) => rewardOf(pair, side) !== null);
  const single = sides.length === 1;
  const name = `Row ${count(pair.row)}${single ? `, ${THUMB[sides[0]!]}` : ""}`;
  return (
    <Card withBorder p="sm" role="group" aria-label={name}>
      <Group justify="space-between" gap="xs">
        <Group gap="xs">
          <Text fw={600} size="sm">
            {name}
          </Text>
          <Text size="sm" c="dimmed">
            margin {signed(pair.margin, 3)}, {pair.split === "train" ? "trained on" : "held out"}
          </Text>
          {pair.margin < 0 && (
            <Badge color="orange" className="state-badge">
              wrong-sided
            </Badge>
          )}
        </Group>
        {onMark && (
          <SegmentedControl
            size="xs"
            aria-label={`Mark row ${pair.row}`}
            value={mark ?? "keep"}
            onChange={(value) => onMark(value === "keep" ? undefined : (value as Mark))}
            data={[
              { value: "keep", label: "Keep" },
              { value: "drop", label: "Drop" },
              { value: "flip", label: "Flip" },
            ]}
          />
        )}
      </Group>
      <Stack gap="xs" mt="xs">
        <Turns turns={sample.prompt} />
        <SimpleGrid cols={{ base: 1, md: sides.length }}>
          {sides.map((side) => (
            <div key={side}>
              <Text size="xs" c="dimmed">
                {single ? (
                  <>
                    {side === "chosen" ? <IconThumbUp {...ICON} /> : <IconThumbDown {...ICON} />} marked{" "}
                    {THUMB[side]}, log-ratio {signed(rewardOf(pair, side), 3)}
                  </>
                ) : (
                  <>
                    {side}, reward {signed(rewardOf(pair, side))}
                  </>
                )}
              </Text>
              {pair[side].length > 0 ? (
                <TokenText tokens={pair[side]} most={most} />
              ) : (
                <AnswerBody answer={sample[side] ?? sample.response ?? ""} />
              )}
            </div>
          ))}
        </SimpleGrid>
      </Stack>
    </Card>
  );
}

/** null: it is a single answer, and not of this side. */
const rewardOf = (pair: PairRead, side: (typeof SIDES)[number]) =>
  side === "chosen" ? pair.chosen_reward : pair.rejected_reward;

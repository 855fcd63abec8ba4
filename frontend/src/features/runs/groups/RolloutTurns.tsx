import { Stack, Text } from "@mantine/core";
import type { GroupAnswer } from "../../../api/runs/groups";
import { counted, figure } from "../../../shared/format/format";

/** The turns of a rollout: the answer of the model and the observation of its environment. */
export function RolloutTurns({ turns }: { turns: GroupAnswer["turns"] }) {
  return (
    <Stack gap={6}>
      {turns.map((turn, at) => (
        <section key={at} aria-label={`Turn ${at + 1}`}>
          <Text size="xs" c="dimmed">
            Turn {at + 1}, {counted(turn.tokens, "token")}
            {turn.reward !== null && `, reward ${figure(turn.reward)}`}
          </Text>
          <pre className="text">{turn.text}</pre>
          {turn.observation.map((message, place) => (
            <div key={place} style={{ marginInlineStart: "1rem" }}>
              <Text size="xs" c="dimmed">
                environment, {message.role}
              </Text>
              <pre className="text">{message.content}</pre>
            </div>
          ))}
        </section>
      ))}
    </Stack>
  );
}

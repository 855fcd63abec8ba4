import { Checkbox, Code, Select, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { createToken, type TokenScope, tokensQuery } from "../../api/accounts/accounts";
import { SendForm } from "../../shared/forms/SendForm";
import { SCOPES } from "./members/roles";
import { ShownOnce } from "../../shared/text/ShownOnce";

const LIVES = [
  { value: "7", label: "in a week" },
  { value: "30", label: "in 30 days" },
  { value: "90", label: "in 90 days" },
  { value: "365", label: "in a year" },
  { value: "", label: "never" },
];

export function TokenForm({ project, onDone }: { project: string; onDone: () => void }) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<string[]>(["read"]);
  const [days, setDays] = useState("90");
  const create = useMutation({
    mutationFn: () =>
      createToken(project, {
        name: name.trim(),
        scopes: scopes as TokenScope[],
        expires_in_days: days ? Number(days) : null,
      }),
    onSuccess: () => client.invalidateQueries({ queryKey: tokensQuery(project).queryKey }),
  });
  if (create.data) {
    return (
      <ShownOnce label="Token" secret={create.data.token} onDone={onDone}>
        <Text size="sm">Put it where your CI keeps its secrets, and use it like this:</Text>
        <Code block tabIndex={0} aria-label="An example with curl">
          {`export STEERBOARD_TOKEN=...   # the token\n` +
            `curl -H "Authorization: Bearer $STEERBOARD_TOKEN" \\\n` +
            `  ${window.location.origin}/api/v1/projects/${encodeURIComponent(project)}/runs`}
        </Code>
      </ShownOnce>
    );
  }
  return (
    <SendForm send={create} label="Create" disabled={!scopes.length} onLeave={onDone}>
      <TextInput
        label="Name"
        description="What uses it, such as nightly-ci. The audit log shows it as the actor."
        required
        maxLength={128}
        autoComplete="off"
        data-autofocus
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Checkbox.Group
        label="Scopes"
        description={`What it may do in ${project}`}
        value={scopes}
        onChange={setScopes}
      >
        <Stack gap="xs" mt="xs">
          {SCOPES.map((one) => (
            <Checkbox key={one.scope} value={one.scope} label={one.scope} description={one.does} />
          ))}
        </Stack>
      </Checkbox.Group>
      <Select
        label="Expires"
        data={LIVES}
        value={days}
        allowDeselect={false}
        maw={220}
        onChange={(value) => setDays(value ?? "")}
      />
    </SendForm>
  );
}

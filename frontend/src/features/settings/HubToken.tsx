import { Button, Card, Group, PasswordInput, Stack, Text, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useMay } from "../../api/accounts/session";
import { hubTokenQuery, removeHubToken, setHubToken } from "../../api/models/pushes";
import { Failure, Loaded } from "../../shared/Feedback";

const WORDS = {
  project: "The project has its own token. It is stored sealed and never shown.",
  server: "The token of the server's environment is used.",
};

/** The token with which models and datasets are pushed to and pulled from a hub. */
export function HubToken({ project }: { project: string }) {
  const client = useQueryClient();
  const mayWrite = useMay(project, "write");
  const query = useQuery(hubTokenQuery(project));
  const [token, setToken] = useState("");
  const again = () => client.invalidateQueries({ queryKey: hubTokenQuery(project).queryKey });
  const save = useMutation({
    mutationFn: () => setHubToken(project, token.trim()),
    onSuccess: async () => {
      setToken("");
      await again();
    },
  });
  const remove = useMutation({ mutationFn: () => removeHubToken(project), onSuccess: again });
  const error = save.error ?? remove.error;
  return (
    <Card withBorder>
      <Stack gap="xs">
        <Title order={2} size="h5">
          Hub token
        </Title>
        <Loaded query={query} rows={1}>
          {({ source }) => (
            <>
              <Text size="sm">
                {source
                  ? WORDS[source]
                  : "There is none: pushes fail, and private repositories are not found."}
              </Text>
              {mayWrite && (
                <form
                  onSubmit={(event) => {
                    event.preventDefault();
                    save.mutate();
                  }}
                >
                  <Group align="flex-end" gap="sm">
                    <PasswordInput
                      label="Token"
                      description="It needs to write for pushes, and to read for pulls."
                      autoComplete="off"
                      style={{ flex: "1 1 240px" }}
                      value={token}
                      onChange={(event) => setToken(event.currentTarget.value)}
                    />
                    <Button type="submit" variant="default" disabled={!token.trim()} loading={save.isPending}>
                      {source === "project" ? "Replace the token" : "Set the token"}
                    </Button>
                    {source === "project" && (
                      <Button
                        variant="subtle"
                        color="gray"
                        loading={remove.isPending}
                        onClick={() => remove.mutate()}
                      >
                        Remove it
                      </Button>
                    )}
                  </Group>
                </form>
              )}
              {error && <Failure error={error} />}
            </>
          )}
        </Loaded>
      </Stack>
    </Card>
  );
}

import { Button, Card, Code, Group, NumberInput, Stack, Table, Text, TextInput, Title } from "@mantine/core";
import { useMutation, useQuery, useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { createProject, projectQuery } from "../../api/accounts/accounts";
import { sessionQuery, useMay } from "../../api/accounts/session";
import { Failure, Loaded } from "../../shared/Feedback";
import { percent } from "../../shared/format/format";
import { useProject } from "../../shared/links";
import { When } from "../../shared/When";
import { HubToken } from "./HubToken";
import { Quota } from "./Quota";

export function ProjectPage() {
  const name = useProject();
  const project = useQuery(projectQuery(name));
  const { data: session } = useSuspenseQuery(sessionQuery);
  const reads = useMay(name, "read");
  return (
    <Stack gap="lg" maw={760}>
      <Card withBorder>
        <Loaded query={project} rows={4}>
          {(found) => (
            <Table aria-label="The project" highlightOnHover={false}>
              <Table.Tbody>
                <Table.Tr>
                  <Table.Th scope="row" w={120} fw={500}>
                    Name
                  </Table.Th>
                  <Table.Td style={{ overflowWrap: "anywhere" }}>{found.name}</Table.Td>
                </Table.Tr>
                <Table.Tr>
                  <Table.Th scope="row" fw={500} style={{ verticalAlign: "top" }}>
                    Held out
                  </Table.Th>
                  <Table.Td>
                    {percent(found.held_out_fraction)} of prompts
                    <Text size="sm" c="dimmed" mt={2}>
                      Training does not read these: they are for evaluation. Which ones is decided by each
                      prompt&apos;s text and a salt of the project, so a prompt is held out in every dataset
                      or in none, and the choice never changes. The only exception is pairs from rankings that
                      someone knowingly gave to training; models that learned from them are marked as such
                      where they are evaluated.
                    </Text>
                  </Table.Td>
                </Table.Tr>
                <Table.Tr>
                  <Table.Th scope="row" fw={500}>
                    Id
                  </Table.Th>
                  <Table.Td>
                    <Code style={{ overflowWrap: "anywhere" }}>{found.id}</Code>
                  </Table.Td>
                </Table.Tr>
                <Table.Tr>
                  <Table.Th scope="row" fw={500}>
                    Created
                  </Table.Th>
                  <Table.Td>
                    <When at={found.created_at} />
                  </Table.Td>
                </Table.Tr>
              </Table.Tbody>
            </Table>
          )}
        </Loaded>
      </Card>
      {reads && <Quota project={name} />}
      {reads && <HubToken project={name} />}
      {session.may_create_projects && <NewProject />}
    </Stack>
  );
}

function NewProject() {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const [share, setShare] = useState<number | string>("");
  const create = useMutation({
    mutationFn: () =>
      createProject({ name: name.trim(), held_out_fraction: share === "" ? null : Number(share) / 100 }),
    onSuccess: async (made) => {
      await client.invalidateQueries({ queryKey: sessionQuery.queryKey });
      await navigate({ to: "/p/$project", params: { project: made.name } });
    },
  });
  return (
    <Card withBorder>
      <Title order={2} size="h5">
        Another project
      </Title>
      <Text size="sm" c="dimmed" mb="sm">
        It has separate data, models, members and tokens; only the workers are shared. You will own it.
      </Text>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          create.mutate();
        }}
      >
        <Stack gap="sm" maw={380}>
          <TextInput
            label="Name"
            description="Letters, digits, dots, dashes and underscores"
            required
            maxLength={128}
            autoComplete="off"
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <NumberInput
            label="Held out, in percent of prompts"
            description="It cannot be changed later. If empty, this server's default applies."
            min={0.1}
            max={99}
            decimalScale={2}
            clampBehavior="blur"
            value={share}
            onChange={setShare}
          />
          {create.error && <Failure error={create.error} />}
          <Group>
            <Button type="submit" loading={create.isPending}>
              Create and open
            </Button>
          </Group>
        </Stack>
      </form>
    </Card>
  );
}

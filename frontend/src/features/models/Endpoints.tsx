import { Alert, Badge, Button, Group, Modal, Table, Text, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { checkEndpoint, type Endpoint, endpointsQuery, removeEndpoint } from "../../api/models/endpoints";
import { useMay } from "../../api/accounts/session";
import { Failure, Loaded } from "../../shared/Feedback";
import { EndpointForm } from "../../shared/forms/EndpointForm";
import { count } from "../../shared/format/format";
import { Confirm } from "../../shared/Confirm";

/** vLLM and other OpenAI-compatible servers that can be used like the project's own models. */
export function Endpoints({ project }: { project: string }) {
  const query = useQuery(endpointsQuery(project));
  const mayWrite = useMay(project, "write");
  const [opened, dialog] = useDisclosure();
  return (
    <section>
      <Group justify="space-between" mb="xs">
        <div>
          <Title order={2} size="h4">
            Endpoints
          </Title>
          <Text size="sm" c="dimmed">
            vLLM or any OpenAI-compatible server, usable in the playground like a model.
          </Text>
        </div>
        {mayWrite && (
          <Button size="xs" variant="default" onClick={dialog.open}>
            Register an endpoint
          </Button>
        )}
      </Group>
      <Loaded query={query} rows={2}>
        {(found) =>
          found.length ? (
            <Table.ScrollContainer minWidth={300}>
              <Table aria-label="Endpoints">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Endpoint</Table.Th>
                    <Table.Th>Address</Table.Th>
                    <Table.Th visibleFrom="sm">Model name</Table.Th>
                    <Table.Th visibleFrom="sm">Serves</Table.Th>
                    <Table.Th>
                      <span className="unseen">Actions</span>
                    </Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {found.map((one) => (
                    <EndpointLine key={one.id} project={project} endpoint={one} mayWrite={mayWrite} />
                  ))}
                </Table.Tbody>
              </Table>
            </Table.ScrollContainer>
          ) : (
            <Text size="sm" c="dimmed">
              None yet.
            </Text>
          )
        }
      </Loaded>
      <Modal opened={opened} onClose={dialog.close} title="Register an endpoint">
        <EndpointForm project={project} onMade={dialog.close} />
      </Modal>
    </section>
  );
}

function EndpointLine({
  project,
  endpoint,
  mayWrite,
}: {
  project: string;
  endpoint: Endpoint;
  mayWrite: boolean;
}) {
  const client = useQueryClient();
  const check = useMutation({
    mutationFn: () => checkEndpoint(project, endpoint.id),
  });
  const remove = useMutation({
    mutationFn: () => removeEndpoint(project, endpoint.id),
    onSuccess: () => client.invalidateQueries({ queryKey: endpointsQuery(project).queryKey }),
  });
  const [asking, ask] = useDisclosure();
  const result = check.data;
  return (
    <Table.Tr>
      <Table.Td fw={550} style={{ overflowWrap: "anywhere" }}>
        {endpoint.name}
      </Table.Td>
      <Table.Td style={{ overflowWrap: "anywhere" }}>
        {endpoint.base_url}{" "}
        {endpoint.has_key && (
          <Badge color="gray" miw="max-content">
            with a key
          </Badge>
        )}
        <Text size="xs" c="dimmed" hiddenFrom="sm">
          {endpoint.model}
          {endpoint.policy_model && `, serves ${endpoint.policy_model.name}`}
        </Text>
        {result && (
          <Alert mt="xs" p="xs" color={result.ok ? "teal" : "red"}>
            {result.ok
              ? `It answered in ${result.seconds.toFixed(2)} s with ${count(result.models.length)} ${result.models.length === 1 ? "model" : "models"}: ${result.models.slice(0, 5).join(", ")}`
              : `${result.problem?.detail ?? "It did not answer."} ${result.problem?.hint ?? ""}`}
          </Alert>
        )}
        {check.error && <Failure error={check.error} />}
      </Table.Td>
      <Table.Td visibleFrom="sm">{endpoint.model}</Table.Td>
      <Table.Td visibleFrom="sm">{endpoint.policy_model?.name ?? "–"}</Table.Td>
      <Table.Td>
        {mayWrite && (
          <Group gap={6} justify="flex-end">
            <Button
              size="compact-sm"
              variant="default"
              loading={check.isPending}
              onClick={() => check.mutate()}
            >
              Check
            </Button>
            <Button size="compact-sm" variant="subtle" color="red" onClick={ask.open}>
              Remove
            </Button>
          </Group>
        )}
        <Confirm
          title={asking ? `Remove ${endpoint.name}?` : null}
          go="Remove"
          pending={remove.isPending}
          error={remove.error}
          onClose={ask.close}
          onGo={() => remove.mutate()}
        >
          Its key is deleted. Its answers are kept.
        </Confirm>
      </Table.Td>
    </Table.Tr>
  );
}

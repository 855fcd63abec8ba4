import { Badge, Table } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { modelsQuery } from "../../api/data";
import { Empty, Loaded } from "../../shared/Feedback";
import { bytes, count } from "../../shared/format";
import { Link } from "../../shared/links";
import { Page } from "../../shared/Page";
import { When } from "../../shared/When";

export function ModelsPage() {
  const { project } = getRouteApi("/p/$project/models").useParams();
  const query = useQuery(modelsQuery(project));
  return (
    <Page title="Models">
      <Loaded query={query}>
        {(page) =>
          page.items.length ? (
            <Table.ScrollContainer minWidth={640}>
              <Table aria-label="Models, the newest first">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Model</Table.Th>
                    <Table.Th>Role</Table.Th>
                    <Table.Th>Method</Table.Th>
                    <Table.Th ta="right">Parameters</Table.Th>
                    <Table.Th ta="right">Size</Table.Th>
                    <Table.Th>Created</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {page.items.map((model) => (
                    <Table.Tr key={model.id}>
                      <Table.Td>
                        <Link to="/p/$project/models/$model" params={{ project, model: model.name }} fw={550}>
                          {model.name}
                        </Link>
                      </Table.Td>
                      <Table.Td>
                        <Badge color="gray">{model.role}</Badge>
                      </Table.Td>
                      <Table.Td>{model.method ?? "–"}</Table.Td>
                      <Table.Td ta="right">{count(model.info.parameters)}</Table.Td>
                      <Table.Td ta="right">{bytes(model.size)}</Table.Td>
                      <Table.Td>
                        <When at={model.created_at} />
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </Table.ScrollContainer>
          ) : (
            <Empty title="No models yet">
              Base models come in with a recipe or a base run; trained ones show up here when their run ends.
            </Empty>
          )
        }
      </Loaded>
    </Page>
  );
}

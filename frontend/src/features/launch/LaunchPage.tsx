import { Badge, Button, Card, Group, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { datasetQuery } from "../../api/datasets/datasets";
import { pipelineQuery } from "../../api/runs/pipelines";
import { recipesQuery } from "../../api/runs/recipes";
import { runKindsQuery } from "../../api/runs/runKinds";
import { Empty, Loaded, LoadedPage } from "../../shared/Feedback";
import { count, counted } from "../../shared/format/format";
import { Link } from "../../shared/links";
import { Page } from "../../shared/Page";
import { kindsFor } from "./kindGroups";
import { RecipeForm } from "./RecipeForm";
import { SingleRuns } from "./SingleRuns";

const route = getRouteApi("/p/$project/launch");

export function LaunchPage() {
  const { project } = route.useParams();
  const { recipe, from, data } = route.useSearch();
  const navigate = route.useNavigate();
  const recipes = useQuery(recipesQuery(project));
  const kinds = useQuery(runKindsQuery(project));
  const origin = useQuery({ ...pipelineQuery(project, from ?? ""), enabled: !!from });
  const back = () => void navigate({ search: {} });
  if (from) {
    return (
      <Page
        title={`Launch ${from} again`}
        about="Its recipe, inputs and settings, to launch unchanged or with changes."
      >
        <Loaded query={origin}>
          {(pipeline) => (
            <RecipeForm
              key={pipeline.id}
              project={project}
              recipe={{ name: pipeline.recipe, description: "", inputs: [], text: pipeline.recipe_text }}
              overrides={(pipeline.settings.overrides ?? []) as string[]}
              onBack={back}
            />
          )}
        </Loaded>
      </Page>
    );
  }
  if (data) return <UsePage project={project} name={data} />;
  return (
    <Page
      title="Launch"
      tab={recipe && `Launch ${recipe}`}
      about="A recipe runs every stage from data to report. A single run does one of them."
    >
      <Loaded query={recipes}>
        {(all) => {
          const chosen = all.find((one) => one.name === recipe);
          if (chosen) {
            return <RecipeForm key={chosen.name} project={project} recipe={chosen} onBack={back} />;
          }
          return (
            <Stack gap="xl">
              <section>
                <Title order={2} size="h4" mb="sm">
                  Recipes
                </Title>
                <SimpleGrid cols={{ base: 1, sm: 2, xl: 3 }}>
                  {all.map((one) => (
                    <Card withBorder key={one.name}>
                      <Group justify="space-between" mb={4}>
                        <Text fw={650}>{one.name}</Text>
                        <Badge color="gray">{one.inputs.length} inputs</Badge>
                      </Group>
                      <Text size="sm" c="dimmed" mb="md" style={{ flex: 1 }}>
                        {one.description}
                      </Text>
                      <Button
                        aria-label={`Set up ${one.name}`}
                        onClick={() => void navigate({ search: { recipe: one.name } })}
                      >
                        Set up
                      </Button>
                    </Card>
                  ))}
                </SimpleGrid>
              </section>
              <Loaded query={kinds}>{(single) => <SingleRuns project={project} kinds={single} />}</Loaded>
            </Stack>
          );
        }}
      </Loaded>
    </Page>
  );
}

/** What can be done with a dataset. */
function UsePage({ project, name }: { project: string; name: string }) {
  const dataset = useQuery(datasetQuery(project, name));
  const kinds = useQuery(runKindsQuery(project));
  return (
    <LoadedPage
      title={`Use ${name}`}
      query={dataset}
      others={
        <Link to="/p/$project/datasets" params={{ project }}>
          All datasets
        </Link>
      }
    >
      {(found) => (
        <Page
          title={`Use ${found.name}`}
          about={`${counted(found.rows - found.held_out_rows, "row")} to train on, ${count(found.held_out_rows)} held out`}
        >
          <Loaded query={kinds}>
            {(all) => {
              const uses = kindsFor(all, found);
              return uses.length ? (
                <SingleRuns
                  project={project}
                  kinds={uses}
                  title={`Runs that take ${found.kind}`}
                  data={found}
                />
              ) : (
                <Empty title="No run takes this dataset">
                  All of its rows are held out, or lack a field that is needed.
                </Empty>
              );
            }}
          </Loaded>
        </Page>
      )}
    </LoadedPage>
  );
}

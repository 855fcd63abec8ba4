import { Badge, Button, Card, Group, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { pipelineQuery } from "../../api/runs/pipelines";
import { recipesQuery } from "../../api/runs/recipes";
import { runKindsQuery } from "../../api/runs/runKinds";
import { Loaded } from "../../shared/Feedback";
import { Page } from "../../shared/Page";
import { LinkButton } from "../../shared/links";
import { RecipeForm } from "./RecipeForm";

const route = getRouteApi("/p/$project/launch");

export function LaunchPage() {
  const { project } = route.useParams();
  const { recipe, from } = route.useSearch();
  const navigate = route.useNavigate();
  const recipes = useQuery(recipesQuery(project));
  const kinds = useQuery(runKindsQuery(project));
  const origin = useQuery({ ...pipelineQuery(project, from ?? ""), enabled: !!from });
  const back = () => void navigate({ search: {} });
  if (from) {
    return (
      <Page
        title={`Launch ${from} again`}
        about="Its recipe, inputs and settings, to start as they were or with changes."
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
              <section>
                <Title order={2} size="h4" mb="sm">
                  Single runs
                </Title>
                <Loaded query={kinds}>
                  {(single) => (
                    <SimpleGrid cols={{ base: 1, sm: 2, lg: 3, xl: 5 }}>
                      {single.map(({ key, title, about }) => (
                        <Card withBorder key={key} p="sm">
                          <Text fw={600} size="sm">
                            {title}
                          </Text>
                          <Text size="sm" c="dimmed" mb="sm" style={{ flex: 1 }}>
                            {about}
                          </Text>
                          <LinkButton
                            component="a"
                            variant="default"
                            size="xs"
                            to="/p/$project/launch/$kind"
                            params={{ project, kind: key }}
                            search={{}}
                            aria-label={`Set up ${title}`}
                          >
                            Set up
                          </LinkButton>
                        </Card>
                      ))}
                    </SimpleGrid>
                  )}
                </Loaded>
              </section>
            </Stack>
          );
        }}
      </Loaded>
    </Page>
  );
}

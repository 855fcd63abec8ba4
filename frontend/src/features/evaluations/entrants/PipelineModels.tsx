import { Button, Popover, Select, Stack, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ANSWERING } from "../../../api/models/models";
import { pipelineModelsQuery, pipelinesQuery } from "../../../api/runs/pipelines";
import { Failure } from "../../../shared/Feedback";
import { AFTER_NAME, useByName } from "../../../shared/forms/useByName";

interface Properties {
  project: string;
  /** Names of models that answer, the oldest first. */
  onModels: (names: string[]) => void;
}

/** Enters every model of a pipeline that can answer, as soon as the pipeline is chosen. */
export function PipelineModels({ project, onModels }: Properties) {
  const [opened, setOpened] = useState(false);
  return (
    <Popover opened={opened} onChange={setOpened} position="bottom-start" width={320} shadow="md" trapFocus>
      <Popover.Target>
        <Button variant="default" size="xs" onClick={() => setOpened(!opened)}>
          All models of a pipeline
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Choice
          project={project}
          onModels={(names) => {
            onModels(names);
            setOpened(false);
          }}
        />
      </Popover.Dropdown>
    </Popover>
  );
}

function Choice({ project, onModels }: Properties) {
  const client = useQueryClient();
  const pipelines = useByName((name) => pipelinesQuery(project, name));
  const add = useMutation({
    mutationFn: async (pipeline: string) => {
      const models = await client.fetchQuery(pipelineModelsQuery(project, pipeline));
      return models.filter((one) => ANSWERING.includes(one.role)).map((one) => one.name);
    },
    onSuccess: (names) => {
      if (names.length) onModels(names);
    },
  });
  return (
    <Stack gap="xs">
      <Select
        label="Pipeline"
        placeholder="Choose one"
        searchable
        data={(pipelines.data ?? []).map((one) => ({
          value: one.name,
          label: `${one.name}${AFTER_NAME}${one.state}`,
        }))}
        onSearchChange={pipelines.onSearchChange}
        nothingFoundMessage="The project has none that fits"
        comboboxProps={{ withinPortal: false }}
        disabled={add.isPending}
        data-autofocus
        value={null}
        onChange={(name) => name && add.mutate(name)}
      />
      {add.data?.length === 0 && (
        <Text size="sm" c="dimmed" role="status">
          This pipeline has not made a model that can answer.
        </Text>
      )}
      {add.error && <Failure error={add.error} />}
    </Stack>
  );
}

import { Button, Modal, MultiSelect, NumberInput, Select, TagsInput, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPlus } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { type Arena, arenaKeys, createArena } from "../../api/arena/arenas";
import { endpointsQuery } from "../../api/models/endpoints";
import { ANSWERING, modelsQuery } from "../../api/models/models";
import { SendForm } from "../../shared/forms/SendForm";
import { useByName } from "../../shared/forms/useByName";

interface Properties {
  project: string;
  onMade: (arena: Arena) => void;
}

export function NewArena({ project, onMade }: Properties) {
  const [opened, { open, close }] = useDisclosure();
  return (
    <>
      <Button leftSection={<IconPlus size={16} />} variant="default" onClick={open}>
        New arena
      </Button>
      <Modal opened={opened} onClose={close} title="New arena">
        <Form
          project={project}
          onMade={(made) => {
            close();
            onMade(made);
          }}
        />
      </Modal>
    </>
  );
}

function Form({ project, onMade }: Properties) {
  const client = useQueryClient();
  const models = useByName((name) => modelsQuery(project, { name, role: ANSWERING }));
  const endpoints = useQuery(endpointsQuery(project));
  const [name, setName] = useState("");
  const [entrants, setEntrants] = useState<string[]>([]);
  const [sides, setSides] = useState("2");
  const [categories, setCategories] = useState<string[]>([]);
  const [temperature, setTemperature] = useState(0.7);
  const create = useMutation({
    mutationFn: () =>
      createArena(project, {
        name: name.trim(),
        entrants: entrants.map((target) => {
          const [kind, ...rest] = target.split(":");
          return {
            [kind!]: rest.join(":"),
            decoding: { temperature, top_p: 1, top_k: 0, stop: [], guidance: 1 },
          };
        }),
        sides: Number(sides),
        categories,
      }),
    onSuccess: async (made) => {
      await client.invalidateQueries({ queryKey: arenaKeys.all(project) });
      onMade(made);
    },
  });
  const missing = Number(sides) - entrants.length;
  const data = [
    ...(models.data ?? [])
      .filter((model) => model.answers)
      .map((model) => ({ value: `model:${model.name}`, label: model.name })),
    ...(endpoints.data ?? []).map((one) => ({
      value: `endpoint:${one.name}`,
      label: `${one.name} (endpoint)`,
    })),
  ];
  return (
    <SendForm send={create} label="Create" disabled={!name.trim() || missing > 0}>
      <TextInput
        label="Name"
        required
        maxLength={128}
        autoComplete="off"
        data-autofocus
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <MultiSelect
        label="Entrants"
        description="Two or more; policies that take scores get their default"
        required
        searchable
        onSearchChange={models.onSearchChange}
        maxValues={16}
        data={data}
        value={entrants}
        onChange={setEntrants}
      />
      <Select
        label="Answers side by side"
        description="How many of the entrants answer a prompt"
        data={["2", "3", "4"]}
        value={sides}
        allowDeselect={false}
        error={entrants.length >= 2 && missing > 0 && `Choose ${missing} more of them, or fewer answers`}
        onChange={(to) => to && setSides(to)}
      />
      <NumberInput
        label="Temperature"
        description="0 always takes the likeliest token"
        min={0}
        max={5}
        step={0.1}
        value={temperature}
        onChange={(value) => setTemperature(Number(value) || 0)}
      />
      <TagsInput
        label="Categories"
        description="Each battle may have one; press Enter to add"
        value={categories}
        maxTags={50}
        onChange={setCategories}
      />
    </SendForm>
  );
}

import { PasswordInput, Select, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { addEndpoint, endpointsQuery } from "../../api/models/endpoints";
import { ANSWERING, modelsQuery } from "../../api/models/models";
import { SendForm } from "./SendForm";
import { useByName } from "./useByName";

interface Properties {
  project: string;
  onMade: (name: string) => void;
  /** Where the form takes the place of something else: goes back to it. */
  onLeave?: () => void;
}

/** Registers an OpenAI-compatible server; `onMade` gets its name. */
export function EndpointForm({ project, onMade, onLeave }: Properties) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const [model, setModel] = useState("");
  const [key, setKey] = useState("");
  const [policy, setPolicy] = useState<string | null>(null);
  const models = useByName((part) => modelsQuery(project, { name: part, role: ANSWERING }), {
    chosen: [policy],
  });
  const make = useMutation({
    mutationFn: () =>
      addEndpoint(project, {
        name,
        base_url: url,
        model,
        api_key: key || null,
        policy_model: policy,
        guides: false,
      }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: endpointsQuery(project).queryKey });
      onMade(name);
    },
  });
  return (
    <SendForm send={make} label="Register" onLeave={onLeave} disabled={!name || !url || !model}>
      <TextInput
        label="Name"
        required
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <TextInput
        label="Address"
        description="Including /v1"
        placeholder="https://models.example.org/v1"
        required
        value={url}
        onChange={(event) => setUrl(event.currentTarget.value)}
      />
      <TextInput
        label="Model name"
        description="As the server names it"
        required
        value={model}
        onChange={(event) => setModel(event.currentTarget.value)}
      />
      <PasswordInput
        label="Key"
        description="Stored encrypted, never shown again"
        autoComplete="off"
        value={key}
        onChange={(event) => setKey(event.currentTarget.value)}
      />
      <Select
        label="Serves this model's weights"
        description="It then takes a requested reward like that model"
        data={(models.data ?? []).map((one) => one.name)}
        onSearchChange={models.onSearchChange}
        value={policy}
        onChange={setPolicy}
        clearable
        searchable
      />
    </SendForm>
  );
}

import {
  Alert,
  Button,
  Code,
  Modal,
  ScrollArea,
  Select,
  Stack,
  Switch,
  Text,
  TextInput,
} from "@mantine/core";
import { useDebouncedValue, useDisclosure } from "@mantine/hooks";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useMay } from "../../api/accounts/session";
import { everything } from "../../api/client";
import { cardQuery, hubTokenQuery, push, type CardAsked, type Pushed } from "../../api/models/pushes";
import { Loaded } from "../Feedback";
import { Link } from "../links";
import { SendForm } from "./SendForm";

const REPOSITORY = /^[A-Za-z0-9_][\w.-]{0,95}\/[A-Za-z0-9_][\w.-]{0,95}$/;
const LICENCES = ["apache-2.0", "mit", "cc-by-4.0", "cc-by-nc-4.0", "llama3", "gemma", "other"];

interface Properties {
  project: string;
  kind: Pushed;
  name: string;
  /** A LoRA model, whose weights can go merged or as an adapter. */
  adapter?: boolean;
}

/** Sends a model or a dataset to a repository of the hub, by a run; shows the card first. */
export function PushToHub(properties: Properties) {
  const mayWrite = useMay(properties.project, "write");
  const [opened, dialog] = useDisclosure();
  if (!mayWrite) return null;
  return (
    <>
      <Button variant="default" onClick={dialog.open}>
        Push to a hub
      </Button>
      <Modal opened={opened} onClose={dialog.close} title={`Push ${properties.name} to a hub`} size="xl">
        <PushForm {...properties} />
      </Modal>
    </>
  );
}

function PushForm({ project, kind, name, adapter }: Properties) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [repo, setRepo] = useState("");
  const [hidden, setHidden] = useState(true);
  const [weights, setWeights] = useState<"merged" | "adapter">("merged");
  const [base, setBase] = useState("");
  const [licence, setLicence] = useState<string | null>(null);
  const named = REPOSITORY.test(repo.trim());
  const asked: CardAsked = {
    repo: repo.trim(),
    ...(licence && { licence }),
    ...(adapter && { weights }),
    ...(adapter && weights === "adapter" && base.trim() && { base: base.trim() }),
  };
  // Someone is still typing.
  const [shown] = useDebouncedValue(asked, 400);
  const card = useQuery(cardQuery(project, kind, name, shown, REPOSITORY.test(shown.repo)));
  const send = useMutation({
    mutationFn: () => push(project, kind, name, { ...asked, private: hidden }),
    onSuccess: async (run) => {
      await client.invalidateQueries({ queryKey: everything(project) });
      await navigate({ to: "/p/$project/runs/$run", params: { project, run: run.id } });
    },
  });
  return (
    <SendForm send={send} label="Push" disabled={!named}>
      <TextInput
        label="Repository"
        placeholder="org/name"
        description="Created if it does not exist. A later push replaces what an earlier one sent."
        error={repo && !named ? "Write org/name" : undefined}
        value={repo}
        onChange={(event) => setRepo(event.currentTarget.value)}
      />
      <Switch
        label="Private"
        description="Only the repository's members see it. A repository that exists keeps its own setting."
        checked={hidden}
        onChange={(event) => setHidden(event.currentTarget.checked)}
      />
      {adapter && (
        <Select
          label="Weights"
          data={[
            { value: "merged", label: "Merged into the base: a whole model" },
            { value: "adapter", label: "The adapter alone" },
          ]}
          allowDeselect={false}
          value={weights}
          onChange={(value) => setWeights(value as typeof weights)}
        />
      )}
      {adapter && weights === "adapter" && (
        <TextInput
          label="The model below the adapter"
          placeholder="known if it was imported from the hub"
          description="Its name on the hub, org/name[@revision]"
          value={base}
          onChange={(event) => setBase(event.currentTarget.value)}
        />
      )}
      <Select
        label="Licence"
        placeholder="not stated"
        description="In the hub's words. What the base and the data allow is for you to check."
        clearable
        searchable
        data={LICENCES}
        value={licence}
        onChange={setLicence}
      />
      <TokenNote project={project} />
      {named && (
        <Stack gap={4}>
          <Text size="sm" fw={500}>
            The card, README.md
          </Text>
          <Loaded query={card} rows={6}>
            {(found) => (
              <ScrollArea.Autosize
                mah={320}
                type="auto"
                offsetScrollbars
                viewportProps={{ tabIndex: 0, role: "group", "aria-label": "Preview of the card" }}
              >
                <Code block>{found.text}</Code>
              </ScrollArea.Autosize>
            )}
          </Loaded>
        </Stack>
      )}
    </SendForm>
  );
}

function TokenNote({ project }: { project: string }) {
  const token = useQuery(hubTokenQuery(project));
  if (!token.data) return null;
  const settings = (
    <Link c="inherit" size="sm" underline="always" to="/p/$project/settings/project" params={{ project }}>
      settings
    </Link>
  );
  if (token.data.source === null)
    return (
      <Alert color="yellow" title="No token is known">
        The push fails unless the worker has HF_TOKEN in its environment. Set the project&apos;s token in the{" "}
        {settings}.
      </Alert>
    );
  return (
    <Text size="sm" c="dimmed">
      {token.data.source === "project"
        ? "The project's own token is used. It can be replaced in the "
        : "The token of the server's environment is used. The project can have its own, see the "}
      {settings}.
    </Text>
  );
}

import { Badge, Button, Group, Menu, Modal, Stack, Text, Textarea, Title } from "@mantine/core";
import { IconChevronDown } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { everything, type Schemas } from "../../api/client";
import { promoteModel, promotionsQuery } from "../../api/models/models";
import { useMay } from "../../api/accounts/session";
import { DataTable } from "../../shared/tables/DataTable";
import { Failure } from "../../shared/Feedback";
import { Link } from "../../shared/links";
import { When } from "../../shared/When";

type Stage = Schemas["ModelOut"]["stage"];
const COLOR = { candidate: "blue", production: "teal" };

export function StageBadge({ stage }: { stage: Stage | undefined }) {
  if (!stage) return null;
  return (
    <Badge className="state-badge" color={COLOR[stage]}>
      {stage}
    </Badge>
  );
}

/** Puts a model into a stage, with a reason that stays in its history. */
export function PromoteButton({ project, model }: { project: string; model: Schemas["ModelDetail"] }) {
  const client = useQueryClient();
  const mayWrite = useMay(project, "write");
  const [target, setTarget] = useState<Stage | undefined>();
  const [note, setNote] = useState("");
  const promote = useMutation({
    mutationFn: (stage: Stage) => promoteModel(project, model.id, { stage, note }),
    onSuccess: async () => {
      setTarget(undefined);
      setNote("");
      await client.invalidateQueries({ queryKey: everything(project) });
    },
  });
  if (!mayWrite) return null;
  const stages: Stage[] = ["candidate", "production", null];
  const say = (stage: Stage) => (stage ? `Promote to ${stage}` : "Remove from its stage");
  const rewards = model.role === "reward" || model.role === "preference";
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button rightSection={<IconChevronDown size={16} />}>Promote</Button>
        </Menu.Target>
        <Menu.Dropdown>
          {stages
            .filter((stage) => stage !== (model.stage ?? null))
            .map((stage) => (
              <Menu.Item key={String(stage)} onClick={() => setTarget(stage)}>
                {say(stage)}
              </Menu.Item>
            ))}
        </Menu.Dropdown>
      </Menu>
      <Modal
        opened={target !== undefined}
        onClose={() => setTarget(undefined)}
        title={target === undefined ? "" : `${say(target)}?`}
      >
        <Stack>
          <Text size="sm">
            {target === "production"
              ? `It replaces the ${rewards ? "reward model" : "policy"} that is in production now, and @production${rewards ? "-reward" : ""} refers to it from then on.`
              : "References to its own name are not affected."}
          </Text>
          <Textarea
            label="Why"
            placeholder="What was measured, who agreed"
            autosize
            minRows={2}
            value={note}
            onChange={(event) => setNote(event.currentTarget.value)}
          />
          {promote.error && <Failure error={promote.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={() => setTarget(undefined)}>
              Cancel
            </Button>
            <Button loading={promote.isPending} onClick={() => promote.mutate(target ?? null)}>
              {target ? "Promote" : "Remove"}
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
}

export function History({ project, model }: { project: string; model: string }) {
  const query = useQuery(promotionsQuery(project, model));
  if (!query.data?.length) return null;
  return (
    <section>
      <Title order={2} size="h4" mb="sm">
        Promotions
      </Title>
      <DataTable
        label="Promotions, the newest first"
        rows={query.data}
        keyOf={(one) => one.id}
        below={(one) => <When at={one.created_at} />}
        columns={[
          { title: "Stage", cell: (one) => (one.stage ? <StageBadge stage={one.stage} /> : "none") },
          {
            title: "Why",
            cell: (one) =>
              one.replaced_by ? (
                <>
                  replaced by{" "}
                  <Link
                    size="sm"
                    to="/p/$project/models/$model"
                    params={{ project, model: one.replaced_by.name }}
                  >
                    {one.replaced_by.name}
                  </Link>
                </>
              ) : (
                one.note || "–"
              ),
          },
          { title: "Who", cell: (one) => one.actor.replace(/^user:/, "") },
          { title: "When", wide: true, cell: (one) => <When at={one.created_at} /> },
        ]}
      />
    </section>
  );
}

import { Badge, Button, Group, Modal, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { everything, type Schemas } from "../../../api/client";
import { useMay } from "../../../api/accounts/session";
import { promoteModel, rollBackModel } from "../../../api/models/models";
import { Failure } from "../../../shared/Feedback";

/** Puts the policy of a round into production, or takes it out in favour of the one that was there before. */
export function RoundActions({
  project,
  round,
  policy,
}: {
  project: string;
  round: number;
  policy: Schemas["RoundPolicy"];
}) {
  const client = useQueryClient();
  const mayWrite = useMay(project, "write");
  const [asking, ask] = useDisclosure();
  const { in_production: there, former } = policy;
  const change = useMutation({
    mutationFn: async () => {
      if (there) await rollBackModel(project, policy.id);
      else await promoteModel(project, policy.id, { stage: "production", note: `result of round ${round}` });
    },
    onSuccess: async () => {
      ask.close();
      await client.invalidateQueries({ queryKey: everything(project) });
    },
  });
  return (
    <Group gap="xs">
      {there && (
        <Badge color="teal" className="state-badge">
          production
        </Badge>
      )}
      {mayWrite && (!there || former) && (
        <Button size="compact-xs" variant="default" onClick={ask.open}>
          {there ? "Roll back" : "Promote"}
        </Button>
      )}
      <Modal
        opened={asking}
        onClose={ask.close}
        title={there ? `Roll back to ${former}?` : `Put ${policy.name} into production?`}
      >
        <Text size="sm" mb="md" style={{ overflowWrap: "anywhere" }}>
          {there
            ? `@production then refers to ${former}. ${policy.name} stays in the registry, without a stage.`
            : "It replaces the policy that is in production now, and @production refers to it from then on."}
        </Text>
        {change.error && <Failure error={change.error} />}
        <Group justify="flex-end" mt="md">
          <Button variant="default" onClick={ask.close}>
            Cancel
          </Button>
          <Button loading={change.isPending} onClick={() => change.mutate()}>
            {there ? "Roll back" : "Promote"}
          </Button>
        </Group>
      </Modal>
    </Group>
  );
}

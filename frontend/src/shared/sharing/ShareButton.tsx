import { Button, type ButtonProps, Modal } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconShare } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { useMay } from "../../api/accounts/session";
import type { NewShareLink, Shared } from "../../api/shareLinks";
import { ShareLinks } from "./ShareLinks";

interface Properties extends ButtonProps {
  project: string;
  /** The heading of the dialog. */
  title: string;
  shared: Shared;
  create: (days: number) => Promise<NewShareLink>;
  /** What a link shows to everyone who has it. */
  children: ReactNode;
}

/** Links for people without an account, for those who may make them. */
export function ShareButton({ project, title, shared, create, children, ...button }: Properties) {
  const mayWrite = useMay(project, "write");
  const [sharing, share] = useDisclosure();
  if (!mayWrite) return null;
  return (
    <>
      <Button variant="default" leftSection={<IconShare size={16} />} onClick={share.open} {...button}>
        Share
      </Button>
      <Modal opened={sharing} onClose={share.close} title={title} size="lg">
        <ShareLinks project={project} shared={shared} create={create}>
          {children}
        </ShareLinks>
      </Modal>
    </>
  );
}

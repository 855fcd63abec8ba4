import { Button, Group, Menu, Modal } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconDownload, IconShare } from "@tabler/icons-react";
import { useMay } from "../../../api/accounts/session";
import { reportHref } from "../../../api/evaluation/reportLinks";
import { ShareReport } from "./ShareReport";

interface Properties {
  project: string;
  evaluation: string;
  baseline: string | null;
}

/** The report as a file, and as a link for people without an account. */
export function ReportActions({ project, evaluation, baseline }: Properties) {
  const mayWrite = useMay(project, "write");
  const [sharing, share] = useDisclosure();
  const href = (ending: "" | ".html" | ".pdf") => reportHref(project, evaluation, ending, baseline);
  return (
    <Group gap="xs">
      <Menu position="bottom-end">
        <Menu.Target>
          <Button size="xs" variant="default" leftSection={<IconDownload size={16} />}>
            Export
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item component="a" href={href(".html")} download>
            One HTML file
          </Menu.Item>
          <Menu.Item component="a" href={href(".pdf")} download>
            PDF
          </Menu.Item>
          <Menu.Item component="a" href={href("")} target="_blank">
            JSON
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {mayWrite && (
        <Button size="xs" variant="default" leftSection={<IconShare size={16} />} onClick={share.open}>
          Share
        </Button>
      )}
      <Modal opened={sharing} onClose={share.close} title="Share the report" size="lg">
        <ShareReport project={project} evaluation={evaluation} />
      </Modal>
    </Group>
  );
}

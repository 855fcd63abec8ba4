import { Button, Group, Menu } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import { reportHref } from "../../../api/evaluation/reportFiles";
import { shareReport } from "../../../api/shareLinks";
import { ShareButton } from "../../../shared/sharing/ShareButton";

interface Properties {
  project: string;
  evaluation: string;
  baseline: string | null;
}

/** The report as a file, and as a link for people without an account. */
export function ReportActions({ project, evaluation, baseline }: Properties) {
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
      <ShareButton
        size="xs"
        project={project}
        title="Share the report"
        shared={{ kind: "report", evaluation }}
        create={(days) => shareReport(project, evaluation, days)}
      >
        Anyone with a link can read the current report without an account. While a campaign is not closed,
        entrants are called A, B, C there.
      </ShareButton>
    </Group>
  );
}

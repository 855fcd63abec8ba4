import { Button, Menu } from "@mantine/core";
import { IconDownload } from "@tabler/icons-react";
import type { Evaluation } from "../../../api/evaluation/evaluations";
import { type AnswerFormat, answersHref } from "../../../api/evaluation/files";

const FORMATS: { format: AnswerFormat; label: string }[] = [
  { format: "fastchat", label: "FastChat (all turns)" },
  { format: "alpaca_eval", label: "AlpacaEval" },
  { format: "arena_hard", label: "Arena-Hard" },
];

/** All answers as a file of another project's format. */
export function ExportAnswers({ project, evaluation }: { project: string; evaluation: Evaluation }) {
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button size="xs" variant="default" leftSection={<IconDownload size={14} />}>
          Export
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {FORMATS.map(({ format, label }) => (
          <Menu.Item key={format} component="a" href={answersHref(project, evaluation.id, format)} download>
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

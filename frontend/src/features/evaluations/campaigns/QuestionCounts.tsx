import { Progress, Text, Title } from "@mantine/core";
import type { Schemas } from "../../../api/client";
import { KINDS } from "../../../shared/campaigns/questionKinds";
import { count, figure } from "../../../shared/format/format";
import { DataTable, type Column } from "../../../shared/tables/DataTable";
import { Share } from "./Share";

type Count = Schemas["QuestionCount"];
type Choice = Schemas["ChoiceCount"];

/** How often each choice was made for the campaign's questions, and how far annotators agree. */
export function QuestionCounts({ questions }: { questions: Count[] }) {
  return (
    <>
      <Title order={2} size="h4">
        Questions
      </Title>
      <Text size="sm" c="dimmed">
        Replies that count: a reviewer&apos;s decision replaces those of annotators. Agreement is the share of
        choices that two annotators of a prompt both made.
      </Text>
      {questions.map((question) => (
        <section key={question.label} aria-label={question.label}>
          <Title order={3} size="h6" style={{ overflowWrap: "anywhere" }}>
            {question.label}
          </Title>
          <Text size="sm" c="dimmed" mb={4}>
            {KINDS[question.kind]}; {count(question.replies)} {question.replies === 1 ? "reply" : "replies"}
            {question.kind !== "text" && (
              <>
                ; agreement{" "}
                <Share
                  of={question.agreement}
                  low={question.agreement_low}
                  high={question.agreement_high}
                  n={question.shared_items}
                />
                {question.alpha !== null && `, alpha ${figure(question.alpha)}`}
              </>
            )}
          </Text>
          {question.choices.length > 0 && <Choices question={question} />}
        </section>
      ))}
    </>
  );
}

function Choices({ question }: { question: Count }) {
  const share = (one: Choice) => (question.replies ? (100 * one.replies) / question.replies : 0);
  const columns: Column<Choice>[] = [
    { title: "Choice", cell: (one) => one.choice },
    { title: "Replies", right: true, cell: (one) => count(one.replies) },
    {
      title: "Share",
      cell: (one) => (
        <Progress
          value={share(one)}
          miw={120}
          aria-label={`${one.choice}: ${Math.round(share(one))}% of replies`}
        />
      ),
    },
  ];
  return (
    <DataTable
      label={`Replies to ${question.label}`}
      rows={question.choices}
      columns={columns}
      keyOf={(one) => one.choice}
    />
  );
}

import { Kbd, Text, Textarea, UnstyledButton } from "@mantine/core";
import { isChosen, withChoice, withReply, type Question } from "./replies";
import { fieldOf, type Asking } from "./useQuestions";

const BY_DIGIT = 10;

/** The campaign's questions about the item, above the task's own buttons. */
export function QuestionPanel({ asking, onSubmit }: { asking: Asking; onSubmit: () => void }) {
  if (!asking.questions.length) return null;
  return (
    <div role="group" aria-label="Questions" className="rank-questions">
      {asking.questions.map((question, place) => (
        <div
          key={question.label}
          className="rank-question"
          data-marked={asking.marked === question.label || undefined}
        >
          {question.kind === "text" ? (
            <TextReply question={question} place={place} asking={asking} onSubmit={onSubmit} />
          ) : (
            <Choices question={question} asking={asking} />
          )}
        </div>
      ))}
    </div>
  );
}

function Title({ question, id }: { question: Question; id?: string }) {
  return (
    <div>
      <Text size="sm" fw={600} id={id} style={{ overflowWrap: "anywhere" }}>
        {question.label}
        {question.required === false && (
          <Text span size="xs" c="dimmed" fw={400}>
            {" "}
            optional
          </Text>
        )}
      </Text>
      {question.help && (
        <Text size="xs" c="dimmed" style={{ overflowWrap: "anywhere" }}>
          {question.help}
        </Text>
      )}
    </div>
  );
}

function Choices({ question, asking }: { question: Question; asking: Asking }) {
  const one = question.kind === "one_choice";
  const { replies } = asking;
  return (
    <>
      <Title question={question} />
      <div
        role={one ? "radiogroup" : "group"}
        aria-label={question.label}
        aria-description={question.help || undefined}
        className="rank-replies"
      >
        {(question.choices ?? []).map((choice, at) => (
          <UnstyledButton
            key={choice}
            role={one ? "radio" : "checkbox"}
            aria-checked={isChosen(question, choice, replies)}
            className="rank-reply"
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => {
              asking.mark(question.label);
              asking.reply(withChoice(replies, question, choice));
            }}
          >
            {choice}
            {at < BY_DIGIT && (
              <Kbd size="xs" visibleFrom="sm" aria-hidden>
                {(at + 1) % BY_DIGIT}
              </Kbd>
            )}
          </UnstyledButton>
        ))}
      </div>
    </>
  );
}

interface TextProperties {
  question: Question;
  place: number;
  asking: Asking;
  onSubmit: () => void;
}

function TextReply({ question, place, asking, onSubmit }: TextProperties) {
  const reply = asking.replies[question.label];
  return (
    <>
      <Title question={question} />
      <Textarea
        id={fieldOf(place)}
        aria-label={question.label}
        autosize
        minRows={1}
        maxRows={4}
        maxLength={10_000}
        value={typeof reply === "string" ? reply : ""}
        onFocus={() => asking.marked !== question.label && asking.mark(question.label)}
        onChange={(event) => asking.reply(withReply(asking.replies, question, event.currentTarget.value))}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            event.currentTarget.blur();
            asking.mark(null);
          }
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) onSubmit();
        }}
      />
    </>
  );
}

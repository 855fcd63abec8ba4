export interface ToolCall {
  function: { name: string; arguments: string };
}

/** An answer that calls tools, as samples keep it. A row that is shown in part may have the beginning of it only. */
export interface CallingAnswer {
  role: string;
  content?: string;
  tool_calls?: Partial<ToolCall>[] | null;
}

export type Answer = string | CallingAnswer;

/** Whether the field of a sample is an answer: a text, or a turn that calls tools. */
export function isAnswer(value: unknown): value is Answer {
  return typeof value === "string" || (typeof value === "object" && value !== null && "role" in value);
}

export const contentOf = (answer: Answer): string =>
  typeof answer === "string" ? answer : (answer.content ?? "");

/** The calls of an answer, each as one line. */
export const callsOf = (answer: Answer): string[] =>
  typeof answer === "string" ? [] : (answer.tool_calls ?? []).map(callText);

/** An answer where there is room for a text only. */
export const answerText = (answer: Answer): string =>
  [contentOf(answer), ...callsOf(answer)].filter(Boolean).join("\n");

export const callText = ({ function: called }: Partial<ToolCall>): string =>
  `${called?.name ?? ""} ${called?.arguments ?? ""}`;

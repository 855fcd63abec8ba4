import { LETTERS, type Verdict } from "../../api/arena/battles";

export interface Choice {
  verdict: Verdict;
  label: string;
  /** The key that presses its button. */
  key: string;
  /** After "Your vote:". */
  given: string;
}

function made(sides: number): Choice[] {
  const two = sides === 2;
  return [
    ...LETTERS.slice(0, sides).map((letter) => {
      const label = `${letter.toUpperCase()} is ${two ? "better" : "best"}`;
      return { verdict: letter, label, key: letter.toUpperCase(), given: label };
    }),
    { verdict: "tie", label: "Tie", key: "T", given: "a tie" },
    {
      verdict: "all_bad",
      label: `${two ? "Both" : "All"} are bad`,
      key: "X",
      given: `${two ? "both" : "all"} are bad`,
    },
  ];
}

const CHOICES = new Map([2, 3, 4].map((sides) => [sides, made(sides)]));
const NONE: Choice[] = [];

/** What may be voted on a battle with so many sides, in the order of the buttons; the same array each time. */
export const choicesOf = (sides: number) => CHOICES.get(sides) ?? NONE;

/** "A is zebra, B is walrus", once the names are known. */
export const namesOf = (names: string[]) =>
  names.map((name, place) => `${LETTERS[place]!.toUpperCase()} is ${name}`).join(", ");

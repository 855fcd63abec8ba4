import { expect, test } from "vitest";
import { csvOf } from "./csv";

test("a row for each x of any line, raw values, and names quoted where they need it", () => {
  const lines = [
    {
      label: 'run "a", first',
      points: [
        { x: 1, y: 0.1 },
        { x: 3, y: null },
      ],
    },
    { label: "b", points: [{ x: 2, y: 7 }], band: [{ low: 6, high: 8 }] },
  ];
  expect(csvOf(lines, "step")).toBe(
    'step,"run ""a"", first",b,"b, low","b, high"\n1,0.1,,,\n2,,7,6,8\n3,,,,\n',
  );
});

test("a name that begins like a formula stays a text", () => {
  const lines = [{ label: "=1+1", points: [{ x: 1, y: -2 }] }];
  expect(csvOf(lines, "step")).toBe("step,'=1+1\n1,-2\n");
});

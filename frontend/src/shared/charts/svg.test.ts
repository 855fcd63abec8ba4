import { expect, test } from "vitest";
import { numbers } from "./axis";
import { PLAIN, tableOf } from "./layout";
import { svgOf } from "./svg";

const LINES = [
  {
    label: "a < b",
    points: [
      { x: 0, y: 0 },
      { x: 10, y: 1 },
    ],
  },
  { label: "off", points: [{ x: 5, y: 0.5 }] },
];

const drawn = (smoothing = 0) => {
  const shown = { ...PLAIN, smoothing };
  const svg = svgOf({
    title: "loss & more",
    x: numbers("step"),
    lines: LINES,
    hidden: (line) => line === 1,
    table: tableOf(LINES, shown),
    shown,
    ranges: { x: { min: 0, max: 10 }, y: { min: 0, max: 1 } },
  });
  return new DOMParser().parseFromString(svg, "image/svg+xml");
};

test("it is a document with its title, its axis and the lines that are on", () => {
  const picture = drawn();
  expect(picture.querySelector("parsererror")).toBeNull();
  const words = [...picture.querySelectorAll("text")].map((one) => one.textContent);
  expect(words).toEqual(expect.arrayContaining(["loss & more", "step", "a < b", "0", "10"]));
  expect(words).not.toContain("off");
  const [line, ...others] = picture.querySelectorAll("polyline");
  expect(others).toEqual([]);
  expect(line!.getAttribute("points")).toBe("72,384 784,44");
});

test("raw values stay pale behind smoothed ones", () => {
  const opacities = [...drawn(0.5).querySelectorAll("polyline")].map((one) =>
    Number(one.getAttribute("stroke-opacity")),
  );
  expect(opacities).toHaveLength(2);
  expect(opacities[0]).toBeLessThan(0.5);
  expect(opacities[1]).toBe(1);
});

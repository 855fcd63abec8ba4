import { expect, test } from "vitest";
import { winsVs } from "./winsVs";

test("win rates name their baseline, and no name where reports have several", () => {
  expect(winsVs(["SFT"])).toBe("Wins vs SFT");
  expect(winsVs(["SFT", "SFT"])).toBe("Wins vs SFT");
  expect(winsVs(["SFT", "Base"])).toBe("Wins vs baseline");
  expect(winsVs([null, undefined])).toBe("Wins vs baseline");
});

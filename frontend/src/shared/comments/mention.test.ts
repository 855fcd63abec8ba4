import { describe, expect, it } from "vitest";
import { begunMention, candidates, completed } from "./mention";

describe("a mention that is being typed", () => {
  it("begins with an @ that follows no letter", () => {
    expect(begunMention("see @bo", 7)).toBe("bo");
    expect(begunMention("@", 1)).toBe("");
    expect(begunMention("mail a@bo", 9)).toBeNull();
    expect(begunMention("@bob is", 7)).toBeNull();
  });

  it("is completed in place, and the text after the caret stays", () => {
    expect(completed("see @bo now", 7, "bob")).toEqual({ text: "see @bob  now", caret: 9 });
  });

  it("offers names that begin with it before those that contain it", () => {
    expect(candidates(["Anna", "joanna", "bob"], "an")).toEqual(["Anna", "joanna"]);
  });
});

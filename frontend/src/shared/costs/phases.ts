import type { Schemas } from "../../api/client";
import { percent, seconds, counted } from "../format/format";

export type Ledger = Schemas["Ledger"];
export type Phase = Schemas["PhaseCost"]["phase"];

/** In the order of the bars, each always in its own colour. */
export const COLOURS: Record<Phase, string> = {
  load: "#868e96",
  data: "#ae3ec9",
  generate: "#1098ad",
  score: "#f08c00",
  reference: "#7048e8",
  value: "#c2255c",
  update: "#2f9e44",
  sync: "#1971c2",
  evaluate: "#82c91e",
  checkpoint: "#a0522d",
  idle: "light-dark(#ced4da, #5c636a)",
  unrecorded: "#adb5bd",
};

export const ABOUT: Record<Phase, string> = {
  load: "opening models, tokenising, checking memory",
  data: "mixing, selecting and writing rows",
  generate: "sampling answers",
  score: "rewards and comparisons",
  reference: "log-probs",
  value: "the critic's values",
  update: "optimiser steps",
  sync: "new weights to the sampler",
  evaluate: "held-out rows and prompts",
  checkpoint: "checkpoints and the finished model",
  idle: "in no phase, such as the start of the process",
  unrecorded: "attempts of a release without phases",
};

/** The phases that some of the ledgers have, in their order. */
export function phasesOf(ledgers: Ledger[]): Phase[] {
  const there = new Set(ledgers.flatMap((ledger) => ledger.phases.map((one) => one.phase)));
  return (Object.keys(COLOURS) as Phase[]).filter((phase) => there.has(phase));
}

/** A ledger in words, for those who cannot see its bar. */
export function inWords(ledger: Ledger): string {
  const total = ledger.device_seconds;
  const parts = ledger.phases.map((one) => {
    const tokens = one.tokens ? `, ${counted(one.tokens, "token")}` : "";
    return `${one.phase} ${seconds(one.device_seconds)} (${percent(total ? one.device_seconds / total : 0, 0)}${tokens})`;
  });
  return [`${seconds(total)} of device time`, ...parts, failedInWords(ledger)].filter(Boolean).join("; ");
}

export function failedInWords({ failed_attempts: attempts, failed_device_seconds: spent }: Ledger): string {
  if (!attempts) return "";
  return `${seconds(spent)} more in ${counted(attempts, "attempt")} that did not succeed`;
}

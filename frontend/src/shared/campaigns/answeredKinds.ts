/** Kinds of datasets whose rows have answers that people can compare. */
export const ANSWERED = ["instructions", "preferences", "unpaired", "labelled"] as const;

import type { Role, TokenScope } from "../../../api/accounts/accounts";

/** What each role is for, as the API's own table of roles has it. */
export const ROLES: { role: Role; does: string }[] = [
  { role: "owner", does: "Everything, with members, tokens and the audit log." },
  { role: "engineer", does: "Sees everything, imports data and models, launches, moves and cancels runs." },
  { role: "reviewer", does: "Annotates, decides where annotators disagree, and sees nothing else." },
  {
    role: "annotator",
    does: "Annotates the answers that the project asks about, and sees nothing else of it.",
  },
  { role: "viewer", does: "Sees data, models, runs and reports, and changes nothing." },
];

export const MAY: { what: string; roles: Role[] }[] = [
  { what: "See data, models, runs and reports", roles: ["owner", "engineer", "viewer"] },
  { what: "Import and delete data and models", roles: ["owner", "engineer"] },
  { what: "Launch, cancel, resume and reorder runs", roles: ["owner", "engineer"] },
  { what: "Annotate answers", roles: ["owner", "engineer", "reviewer", "annotator"] },
  { what: "Decide where annotators disagree", roles: ["owner", "engineer", "reviewer"] },
  { what: "Members, tokens, audit log, new projects", roles: ["owner"] },
];

export const SCOPES: { scope: TokenScope; does: string }[] = [
  { scope: "read", does: "See data, models, runs, reports and the live events." },
  { scope: "write", does: "Import, label and delete datasets and models." },
  { scope: "run", does: "Launch recipes and runs; cancel, resume and reorder them." },
  { scope: "admin", does: "Members, tokens and the audit log: as much as an owner." },
];

import createClient, { type Middleware } from "openapi-fetch";
import { randomId } from "./randomId";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

/** One thing that is wrong, and where. `line` and `column` of a text that was sent, from 1. */
export interface FaultPlace {
  location: string;
  message: string;
  line?: number | null;
  column?: number | null;
}

/** A failed request: the API's problem document, or why there was no answer. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly title: string,
    detail: string,
    readonly hint: string | null = null,
    readonly places: FaultPlace[] = [],
    /** What else the problem document has, such as where in a filter the mistake is. */
    readonly more: Record<string, unknown> = {},
  ) {
    super(detail || title);
  }

  static unreachable(status = 0): Problem {
    return new Problem(
      status,
      "unreachable",
      "The server cannot be reached",
      "No answer came from Steerboard.",
      "Is `steerboard up` still running? This page retries automatically.",
    );
  }

  static async of(response: Response): Promise<Problem> {
    try {
      const body = (await response.clone().json()) as Partial<Schemas["Problem"]>;
      return new Problem(
        response.status,
        body.code ?? "unknown",
        body.title ?? `Status ${response.status}`,
        body.detail ?? "",
        body.hint ?? null,
        (body.errors as FaultPlace[] | undefined) ?? [],
        body,
      );
    } catch {
      // A proxy's word that Steerboard behind it gave none.
      if ([502, 503, 504].includes(response.status)) return Problem.unreachable(response.status);
      return new Problem(
        response.status,
        "unknown",
        `Status ${response.status}`,
        "The server sent no explanation.",
      );
    }
  }
}

/** Below this is cached whatever belongs to a project. */
export const everything = (project: string) => [project] as const;

let csrfToken = "";

export function setCsrfToken(token: string): void {
  csrfToken = token;
}

/** Headers of a request that changes something. The key makes a repeated one harmless. */
export function unsafeHeaders(): Record<string, string> {
  return { "X-CSRF-Token": csrfToken, "Idempotency-Key": randomId() };
}

const protect: Middleware = {
  onRequest({ request }) {
    if (request.method === "GET") return;
    request.headers.set("X-CSRF-Token", csrfToken);
    if (request.method === "POST" && !request.headers.has("Idempotency-Key")) {
      request.headers.set("Idempotency-Key", randomId());
    }
  },
  async onResponse({ response }) {
    if (!response.ok) throw await Problem.of(response);
  },
  onError() {
    return Problem.unreachable();
  },
};

export const api = createClient<paths>({ baseUrl: window.location.origin });
api.use(protect);

/** The data of an answer. Failures were thrown by the middleware already. */
export async function data<T>(request: Promise<{ data?: T; response: Response }>): Promise<T> {
  const answer = await request;
  return answer.data as T;
}

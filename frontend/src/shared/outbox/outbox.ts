import { Problem } from "../../api/client";
import { type Tabs, thisTab } from "./tabs";

/** A person's work on its way to the server. It stays in the browser's storage until the server has it, which knows it
 * by its `submission` when it comes twice. */
export interface Parcel {
  submission: string;
  /** The server's error when it refused it for good. */
  refused?: string;
  /** The open tab that sends it. */
  tab?: string;
}

const WAITS_MS = [500, 1000, 2000, 5000, 10_000, 15_000];

/** Whether the same request may succeed later, as when its sender has signed in again. Only Steerboard's own word is
 * final: a 404 without a code is one of something in between, such as a proxy whose server is away. */
export function passing(error: unknown): boolean {
  return (
    !(error instanceof Problem) ||
    error.code === "unknown" ||
    [0, 401, 403, 408, 425, 429].includes(error.status) ||
    error.status >= 500 ||
    notYet(error)
  );
}

/** Whether it is too early for this parcel alone, so that others need not wait for it. */
const notYet = (error: unknown) => error instanceof Problem && error.code === "answers_missing";

/** Sends parcels one after another, in their order, and again until each has arrived or is refused for good. Those of
 * another tab are that tab's to send and to take back, until it is closed. */
export class Outbox<P extends Parcel> {
  private parcels: P[];
  private readonly listeners = new Set<() => void>();
  private sending = false;
  private underway: Promise<void> = Promise.resolve();
  private failures = 0;
  /** Why the last try failed. */
  problem: Error | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private state: "new" | "open" | "closed" = "new";
  /** Other tabs that have parcels, until they are closed. */
  private readonly others = new Set<string>();

  constructor(
    private readonly name: string,
    private readonly send: (parcel: P) => Promise<void>,
    private readonly storage: Storage = localStorage,
    private readonly tabs: Tabs = thisTab,
  ) {
    this.parcels = read<P>(storage, name).filter((parcel) => parcel.tab === tabs.id);
    this.lookForOthers();
  }

  /** A new list after every change, for React. */
  get all(): readonly P[] {
    return this.parcels;
  }

  get waiting(): P[] {
    return this.parcels.filter((parcel) => !parcel.refused);
  }

  /** The last try failed, and another one will come. */
  get stuck(): boolean {
    return this.failures > 0 && this.waiting.length > 0;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  snapshot = (): readonly P[] => this.parcels;

  private get closed(): boolean {
    return this.state === "closed";
  }

  add(parcel: P): void {
    this.keep([...this.parcels, { ...parcel, tab: this.tabs.id }]);
    void this.flush();
  }

  /** Takes a parcel back that has not arrived, as far as is known here. False when it is no longer here. */
  async takeBack(submission: string): Promise<boolean> {
    for (let known: unknown = null; known !== this.underway;) {
      known = this.underway;
      await this.underway;
    }
    const mine = this.waiting.find((parcel) => parcel.submission === submission);
    if (!mine) return false;
    this.keep(this.parcels.filter((parcel) => parcel !== mine));
    return true;
  }

  forget(submission: string): void {
    this.keep(this.parcels.filter((parcel) => parcel.submission !== submission));
  }

  /** Tries now, whatever the wait. */
  flush = async (): Promise<void> => {
    clearTimeout(this.timer);
    if (this.sending || this.closed) return;
    this.sending = true;
    try {
      let early: unknown = null;
      const tried = new Set<string>();
      for (;;) {
        const next = this.waiting.find((parcel) => !tried.has(parcel.submission));
        if (!next) break;
        tried.add(next.submission);
        const sent = this.sendOne(next);
        this.underway = sent.catch(() => undefined);
        try {
          await sent;
        } catch (error) {
          if (!notYet(error)) throw error;
          early = error;
        }
      }
      if (early) throw early;
      this.failures = 0;
      this.problem = null;
    } catch (error) {
      this.problem = error as Error;
      const wait = WAITS_MS[Math.min(this.failures, WAITS_MS.length - 1)]!;
      this.failures += 1;
      if (!this.closed) this.timer = setTimeout(() => void this.flush(), wait);
    } finally {
      this.sending = false;
      this.tell();
    }
  };

  open(): void {
    this.state = "open";
    window.addEventListener("storage", this.lookForOthers);
    this.lookForOthers();
    void this.flush();
  }

  close(): void {
    this.state = "closed";
    window.removeEventListener("storage", this.lookForOthers);
    clearTimeout(this.timer);
  }

  /** Takes over what tabs have left that are closed, and what others leave when they are. */
  private lookForOthers = (): void => {
    for (const { tab = "" } of read<P>(this.storage, this.name)) {
      if (tab === this.tabs.id || this.others.has(tab)) continue;
      this.others.add(tab);
      this.tabs.whenClosed(tab, () => this.takeOver(tab));
    }
  };

  private takeOver(tab: string): void {
    this.others.delete(tab);
    if (this.closed) return;
    const left = read<P>(this.storage, this.name).filter((parcel) => (parcel.tab ?? "") === tab);
    if (left.length === 0) return;
    this.keep([...left.map((parcel) => ({ ...parcel, tab: this.tabs.id })), ...this.parcels]);
    if (this.state === "open") void this.flush();
  }

  private async sendOne(parcel: P): Promise<void> {
    try {
      await this.send(parcel);
    } catch (error) {
      if (passing(error)) throw error;
      const refused = { ...parcel, refused: (error as Problem).message };
      this.keep(this.parcels.map((one) => (one.submission === parcel.submission ? refused : one)));
      return;
    }
    this.failures = 0;
    this.forget(parcel.submission);
  }

  private keep(parcels: P[]): void {
    // What other tabs put there stays: each tab only adds and removes its own.
    const known = new Set([...this.parcels, ...parcels].map((parcel) => parcel.submission));
    const others = read<P>(this.storage, this.name).filter((parcel) => !known.has(parcel.submission));
    this.parcels = parcels;
    const text = JSON.stringify([...others, ...parcels]);
    try {
      this.storage.setItem(this.name, text);
    } catch {
      // A full storage: as long as the page is open it is sent all the same.
    }
    this.tell();
  }

  private tell(): void {
    // A new list, so that a change of `stuck` is seen too.
    this.parcels = [...this.parcels];
    for (const listener of this.listeners) listener();
  }
}

function read<P extends Parcel>(storage: Storage, name: string): P[] {
  try {
    const found: unknown = JSON.parse(storage.getItem(name) ?? "[]");
    return Array.isArray(found) ? (found as P[]) : [];
  } catch {
    return [];
  }
}
